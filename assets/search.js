// What the search page ranks by: Sphinx's own scores, with chapters before the pages that list words and calls.
// biome-ignore lint/correctness/noUnusedVariables: read by the search page's script.
var Scorer = {
  score: ([page, , , , score]) => (/(glossary|api|notation|references)$/.test(page) ? score - 60 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// What the theme's buttons do. It calls functions from attributes, which the pages' policy does not run
// (book/_ext/content_policy.py): the build has put their names into `data-call`.
document.addEventListener("click", ({ target }) => {
  const name = target.closest?.("[data-call]")?.dataset.call;
  if (name === "print") window.print();
  else if (name === "toggleFullScreen") globalThis.toggleFullScreen();
});

// The explorers' style sheet: the theme's colors where there is one, readable ones where there is none.

export const STYLE = `
.fts-explorer { --fts-line: var(--pst-color-border, var(--jp-border-color1, #c8c8c8)); --fts-ink: var(--pst-color-text-base, var(--jp-content-font-color1, #222));
  --fts-soft: var(--pst-color-text-muted, var(--jp-content-font-color2, #5c5c5c)); --fts-blue: #0072B2; --fts-orange: #C65300; --fts-green: #00795A; --fts-page: var(--pst-color-background, var(--jp-layout-color1, #fff));
  border: 1px solid var(--fts-line); border-radius: .4rem; padding: .9rem 1rem; margin: 1rem 0; color: var(--fts-ink); font-size: .92rem; line-height: 1.45; container-type: inline-size; }
html[data-theme="dark"] .fts-explorer, body[data-jp-theme-light="false"] .fts-explorer { --fts-blue: #56B4E9; --fts-orange: #F0803C; --fts-green: #35C79B; }
.fts-explorer [hidden] { display: none; }
.fts-head { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin-bottom: .6rem; }
.fts-head strong { flex: 1 1 14rem; }
.fts-explorer select, .fts-explorer button { font: inherit; color: inherit; background: var(--fts-page); border: 1px solid var(--fts-line); border-radius: .3rem; padding: .2rem .5rem; max-width: 100%; }
.fts-explorer button { cursor: pointer; }
.fts-explorer button:disabled { opacity: .55; cursor: default; }
.fts-explorer :is(select, button, input, svg, .fts-drag):focus-visible { outline: 2px solid var(--fts-blue); outline-offset: 2px; }
.fts-controls { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 13.5rem), 1fr)); gap: .35rem 1.4rem; }
.fts-control { display: grid; grid-template-columns: 1fr auto; align-items: baseline; column-gap: .5rem; }
.fts-control input, .fts-control select { grid-column: 1 / -1; width: 100%; margin: .1rem 0 .3rem; accent-color: var(--fts-blue); }
.fts-control input { height: 1.6rem; }
.fts-control output { font-variant-numeric: tabular-nums; color: var(--fts-soft); }
.fts-explorer progress { display: block; width: 100%; height: .3rem; margin: .3rem 0; border: 0; border-radius: 2px; background: var(--fts-line); accent-color: var(--fts-blue); visibility: hidden; }
.fts-explorer progress::-webkit-progress-bar { background: var(--fts-line); border-radius: 2px; }
.fts-explorer progress::-webkit-progress-value { background: var(--fts-blue); border-radius: 2px; }
.fts-result { min-height: 3.2em; }
.fts-result .fts-equation-line { font: 1.12rem/1.6 "Times New Roman", Times, serif; overflow-wrap: anywhere; }
.fts-result sub, .fts-result sup, .fts-tile sub, .fts-tile sup { font-size: .72em; line-height: 0; }
.fts-good { color: var(--fts-green); font-weight: 600; } .fts-bad { color: var(--fts-orange); font-weight: 600; } .fts-soft { color: var(--fts-soft); }
.fts-figure { display: flex; flex-wrap: wrap; gap: .8rem; margin-top: .4rem; overflow: hidden; }
.fts-figure svg { display: block; font-size: 12px; max-width: 100%; background: none; }
.fts-figure svg text { fill: var(--fts-ink); } .fts-figure svg text.soft { fill: var(--fts-soft); } .fts-figure svg text.name { fill: var(--fts-soft); }
.fts-figure svg .axis { stroke: var(--fts-soft); stroke-width: 1; fill: none; } .fts-figure svg .grid { stroke: var(--fts-line); stroke-width: 1; fill: none; }
.fts-tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(88px, 1fr)); gap: .7rem .8rem; width: 100%; }
.fts-tiles.fts-wide { grid-template-columns: repeat(auto-fill, minmax(min(150px, 45%), 1fr)); }
.fts-tile { text-align: center; font-size: 12px; font-variant-numeric: tabular-nums; }
.fts-tile :is(svg, canvas) { display: block; width: 100%; height: auto; border: 1px solid var(--fts-line); image-rendering: pixelated; }
.fts-tile.fts-off { color: var(--fts-soft); } .fts-tile.fts-off :is(svg, canvas) { opacity: .4; } .fts-tile.fts-kept canvas { border-color: var(--fts-blue); box-shadow: 0 0 0 1px var(--fts-blue); }
.fts-drag { cursor: grab; touch-action: none; } .fts-drag:active { cursor: grabbing; }
.fts-body { display: flex; flex-direction: column; }
.fts-readout { min-height: 1.5em; font-size: .85rem; font-variant-numeric: tabular-nums; }
.fts-control button { grid-column: 1 / -1; justify-self: start; margin: .1rem 0 .3rem; }
.fts-player { grid-column: 1 / -1; display: flex; gap: .5rem; } .fts-player button { margin: .1rem 0 .3rem; }
.fts-cell { cursor: pointer; }
.fts-node { transition: transform .7s; } .fts-appears { animation: fts-appears .7s; } @keyframes fts-appears { from { opacity: 0; } }
@media (prefers-reduced-motion: reduce) { .fts-node { transition: none; } .fts-appears { animation: none; } }
.fts-more summary { cursor: pointer; color: var(--fts-soft); width: fit-content; }
.fts-terms { display: flex; flex-wrap: wrap; gap: .3rem .4rem; margin: .2rem 0 .3rem; }
.fts-term { border: 1px solid var(--fts-line); border-radius: 1rem; padding: 0 .6rem; font: 1rem/1.6 "Times New Roman", Times, serif; transition: color .2s, border-color .2s, background-color .2s; }
.fts-term.fts-on { color: var(--fts-page); background: var(--fts-green); border-color: var(--fts-green); } .fts-term.fts-wrong { color: var(--fts-orange); border-color: var(--fts-orange); } .fts-term.fts-off { color: var(--fts-soft); }
.fts-unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
/* On a phone a hand on a slider hides what stands below it: the result comes first. */
@container (max-width: 479px) { .fts-result { order: 1; } .fts-controls { order: 2; } .fts-body progress { order: 3; } .fts-figure { order: 4; } .fts-readout { order: 5; } }
.fts-still-hidden { display: none; }
@media print { .fts-explorer { display: none; } .fts-still-hidden { display: block; } }
`;

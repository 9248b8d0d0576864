"""The style of a page: light and dark, wide, narrow and printed."""

STYLE = """\
:root {
  color-scheme: light dark;
  --paper: #fdfdfc; --ink: #1d2126; --dim: #5d666f; --line: #dcdfe3; --soft: #f3f4f5;
  --prompt: #eef4fd; --accent: #1f5fbf; --bad: #b3261e; --good: #1a7441;
  --add: #e2f5e7; --add-ink: #11562c; --del: #fde8e7; --del-ink: #8c1d18;
  --c: #5f6b76; --k: #8a2e9e; --s: #1b6b3a; --n: #9a4a00; --f: #1f5fbf; --t: #0b6a78;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas,
    "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181b; --ink: #e3e5e8; --dim: #9ba4ae; --line: #343a41; --soft: #1f2327;
    --prompt: #1b2635; --accent: #82b4ff; --bad: #ff9a91; --good: #6fd394;
    --add: #15301f; --add-ink: #93e0ad; --del: #3a1c1b; --del-ink: #ffb4ad;
    --c: #94a0ac; --k: #d9a0ea; --s: #8fd6a4; --n: #f0b37a; --f: #8bbcff; --t: #7ad0dc;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink); overflow-wrap: anywhere;
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans",
    "DejaVu Sans",
    sans-serif;
}
main, footer { max-width: 54rem; margin: 0 auto; padding: 2.5rem 1.25rem 1rem; }
footer { padding-top: 0; padding-bottom: 2.5rem; color: var(--dim);
  font-size: .8125rem; }
a { color: var(--accent); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px;
  border-radius: 3px; }
h1, h2, h3, h4, h5, h6 { line-height: 1.25; margin: 1.2em 0 .4em; font-size: 1rem; }
h1 { font-size: 1.75rem; margin: 0 0 1rem; letter-spacing: -.01em; text-wrap: balance; }
main > article + article { margin-top: 4rem; border-top: 2px solid var(--line);
  padding-top: 2rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr));
  gap: .6rem 1.5rem; margin: 0 0 1.5rem; padding: 1rem 0; border: solid var(--line);
  border-width: 1px 0; font-size: .875rem; }
dt { color: var(--dim); font-size: .75rem; } dd { margin: 0; }
dd.exact { font: .75rem/1.9 var(--mono); }
nav { font-size: .9375rem; margin-bottom: 2rem; }
nav ol { margin: 0; padding-left: 2rem; } nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav li .label { margin: 0 0 .5rem; font-weight: 400; }
nav li::marker { color: var(--dim); font-variant-numeric: tabular-nums; }
.label { margin: .9rem 0 .3rem; color: var(--dim); font-size: .75rem;
  font-weight: 600; }
.turn { margin: 0 0 2.5rem; }
.entry { margin: 0 0 .5rem; }
.entry.user { background: var(--prompt); border-left: 3px solid var(--accent);
  border-radius: 0 8px 8px 0; padding: .75rem 1.1rem; margin-bottom: 1.25rem; }
.by { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 .75rem;
  margin: 0 0 .35rem;
  color: var(--dim); font-size: .8125rem; }
.by h2, .by h3, .by h4, .by h5, .by h6, .by strong { margin: 0; font-size: .875rem;
  font-weight: 600; color: var(--ink); }
.by a { margin-left: auto; color: inherit; text-decoration: none;
  font-variant-numeric: tabular-nums; }
.by a:hover { text-decoration: underline; }
.again { justify-content: flex-end; margin: 0; } .again a { margin-left: 0; }
.said > :first-child { margin-top: 0; } .said > :last-child { margin-bottom: 0; }
.said { margin: 0 0 .75rem; } .user > :last-child { margin-bottom: 0; }
.said p, .said ul, .said ol { margin: 0 0 .75em; } .said li > p { margin-bottom: .3em; }
.said ul, .said ol { padding-left: 1.6rem; }
.said blockquote { margin: 0 0 .75em; padding-left: 1rem;
  border-left: 3px solid var(--line);
  color: var(--dim); }
.said hr { border: 0; border-top: 1px solid var(--line); margin: 1.25rem 0; }
.wide { overflow-x: auto; margin-bottom: .75em; }
table { border-collapse: collapse; font-size: .9375rem; }
th, td { padding: .3rem .7rem; border: 1px solid var(--line); text-align: left; }
th { background: var(--soft); }
code, pre, .subject { font-family: var(--mono); font-size: .8125rem; }
:not(pre) > code { background: var(--soft); border-radius: 4px; padding: .12em .35em; }
pre { margin: 0 0 .75em; padding: .7rem .9rem; overflow-x: auto; line-height: 1.5;
  background: var(--soft); border-radius: 6px; tab-size: 4; overflow-wrap: normal; }
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
.fold { margin: 0 0 .4rem; font-size: .875rem; }
.line { display: flex; align-items: baseline; gap: 0 .6rem; padding: .3rem .6rem;
  border: 1px solid var(--line); border-radius: 6px; }
summary { cursor: pointer; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "›"; color: var(--dim); font-weight: 600; width: .6em;
  flex: none; }
details[open] > summary::before { transform: rotate(90deg); }
summary:hover { background: var(--soft); }
.line strong { font-weight: 600; flex: none; max-width: 60%; }
.subject { color: var(--dim); flex: 1 1 0; min-width: 0; overflow: hidden;
  white-space: nowrap;
  text-overflow: ellipsis; }
.fact { color: var(--dim); font-size: .75rem; flex: none;
  font-variant-numeric: tabular-nums; }
.line > .fact:first-of-type { margin-left: auto; }
.mark { flex: none; width: 1em; text-align: center; color: var(--dim); }
.ok > .line .mark { color: var(--good); }
.odd > .line .mark, .odd > .line .fact { color: var(--n); }
.odd > .line .mark { font-weight: 700; }
.error > .line { border-color: var(--bad); }
.error > .line .mark, .error > .line .fact { color: var(--bad); }
.reasoning > .line, .note > .line { border-style: dashed; }
.reasoning .subject { font-family: inherit; font-style: italic; }
.inner { margin: .4rem 0 1rem .55rem; padding-left: .9rem;
  border-left: 2px solid var(--line); }
.reasoning > .inner { color: var(--dim); }
.nested > .inner { padding-top: .5rem; }
.nested h3 { font-size: 1.125rem; }
.cut, p.note { color: var(--dim); font-size: .8125rem; margin: 0 0 .75rem; }
.cut { margin-top: -.4rem; }
p.note.error { color: var(--bad); background: var(--del); border-radius: 6px;
  padding: .4rem .8rem; }
.entry.event > p.note { text-align: center; }
.todos { list-style: none; margin: 0 0 .75rem; padding: 0; font-size: .9375rem; }
.todos li { display: flex; gap: .5rem; }
.todos .done { color: var(--dim); }
.todos .done .mark + span { text-decoration: line-through; }
figure { margin: 0 0 .75rem; }
img { max-width: 100%; max-height: 40rem; border: 1px solid var(--line);
  border-radius: 6px; }
figcaption { color: var(--dim); font-size: .75rem; }
.di, .dd { display: inline-block; min-width: 100%; }
.di { background: var(--add); color: var(--add-ink); }
.dd { background: var(--del); color: var(--del-ink); }
.dh { color: var(--dim); }
.o-red { color: var(--bad); } .o-green { color: var(--good); }
.o-yellow { color: var(--n); } .o-blue { color: var(--f); }
.o-magenta { color: var(--k); } .o-cyan { color: var(--t); }
.o-strong { font-weight: 700; } .o-dim { color: var(--dim); }
.o-emphasis { font-style: italic; } .o-underline { text-decoration: underline; }
pre [class^="c"] { color: var(--c); } pre [class^="k"], pre .ow { color: var(--k); }
pre [class^="s"] { color: var(--s); } pre [class^="m"] { color: var(--n); }
pre .nf, pre .nc, pre .fm { color: var(--f); }
pre .nt, pre .na, pre .nb, pre .bp, pre .nd { color: var(--t); }
@media (max-width: 40rem) {
  body { font-size: 15px; }
  main, footer { padding-left: .9rem; padding-right: .9rem; }
  main { padding-top: 1.25rem; }
  h1 { font-size: 1.375rem; }
  dl { grid-template-columns: 1fr 1fr; gap: .5rem 1rem; }
  .entry.user { padding: .6rem .8rem; }
  .line { flex-wrap: wrap; }
  .subject { flex-basis: 40%; }
  .inner { margin-left: .2rem; padding-left: .6rem; }
}
@media print {
  :root { color-scheme: light; }
  body { font-size: 10pt; }
  main, footer { max-width: none; padding: 0; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .line, .by, .entry.user .by { break-inside: avoid; break-after: avoid; }
  ::details-content { content-visibility: visible; block-size: auto; }
}
"""

/* A short name or flag is not broken at its hyphens. In a table, code is broken at its spaces, not within a word. */
function keepNamesWhole() {
  for (const code of document.querySelectorAll(":is(.language-bash, .language-sh) code"))
    code.innerHTML = code.innerHTML.replace(/(?<![\w-])--?[a-z][\w-]*/g, '<span class="flag">$&</span>');
  for (const code of document.querySelectorAll(".md-typeset :not(pre) > code")) {
    const isInTable = code.closest("td") !== null;
    if (isInTable && code.textContent.includes(" ")) code.style.wordBreak = "normal";
    else if (code.textContent.length < (isInTable ? 17 : 32)) code.style.whiteSpace = "nowrap";
  }
}

/* Two things that the theme leaves out: wide tables can be scrolled with the keyboard, and the buttons beside each
   block of code have a name of their own for screen readers. The theme adds both kinds of elements while a page is shown. */
function mend() {
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (table.scrollWidth > table.clientWidth) table.setAttribute("tabindex", "0");
    else table.removeAttribute("tabindex");
  }
  document
    .querySelectorAll("nav.md-code__nav")
    .forEach((nav, position) => nav.setAttribute("aria-label", `Code ${position + 1}`));
}

/* Pictures follow the theme of the page, which may be another one than that of the browser. */
function themePictures() {
  const isDark = document.body.dataset.mdColorScheme === "slate";
  for (const source of document.querySelectorAll("picture > source")) source.media = isDark ? "all" : "not all";
}

new MutationObserver(themePictures).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", mend);
keepNamesWhole();
themePictures();
mend();

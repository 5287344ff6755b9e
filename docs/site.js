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

new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", mend);
mend();

// Typesets the formulas of the page with the KaTeX that `make docs` put beside the site; without it they stay as written.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof katex === "undefined") return;
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.trim();
    const block = text.startsWith("\\[");
    katex.render(text.replace(/^\\[[(]|\\[\])]$/g, ""), place, { displayMode: block, throwOnError: false });
  }
});

// Debian's mkdocs refers to this file and does not have it: the theme's look for tables.
for (const table of document.querySelectorAll(".rst-content table")) {
    table.classList.add("docutils");
}

// Debian's mkdocs refers to this file and does not have it: the theme's look for tables.
for (const table of document.querySelectorAll(".rst-content table")) {
    table.classList.add("docutils");
}

// Light or dark: as the reader's system has it, until the reader chooses.
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => {
    try { return localStorage.getItem("color-scheme"); } catch { return null; }
};
const button = document.createElement("button");
button.className = "color-scheme";
const show = () => {
    const dark = (chosen() || (system.matches ? "dark" : "light")) === "dark";
    document.documentElement.classList.toggle("dark", dark);
    button.textContent = dark ? "Light" : "Dark";
};
button.addEventListener("click", () => {
    try { localStorage.setItem("color-scheme", button.textContent.toLowerCase()); } catch {}
    show();
});
system.addEventListener("change", show);
document.querySelector(".wy-side-nav-search")?.append(button);
show();

// A page that was opened as a file gets no worker and may not fetch the index: search here.
if (location.protocol === "file:" && document.getElementById("mkdocs-search-results")) {
    const load = name => new Promise(done => {
        const script = document.createElement("script");
        script.src = base_url + "/search/" + name;
        script.onload = done;
        document.head.append(script);
    });
    load("search_index.js").then(() => {
        const words = (new URLSearchParams(location.search).get("q") || "").toLowerCase()
            .split(/\s+/).filter(Boolean);
        const found = words.length === 0 ? [] : window.search_index.docs.map(page => {
            const title = page.title.toLowerCase();
            const text = page.text.toLowerCase();
            const all = words.every(word => title.includes(word) || text.includes(word));
            const score = words.reduce((sum, word) => sum + 20 * title.includes(word) +
                Math.min(9, text.split(word).length - 1), 0);
            return { page, score: all ? score : 0, at: text.indexOf(words[0]) };
        }).filter(hit => hit.score > 0).sort((a, b) => b.score - a.score).slice(0, 50);
        const list = document.getElementById("mkdocs-search-results");
        list.textContent = found.length === 0 ? "No results found" : "";
        for (const { page, at } of found) {
            const link = document.createElement("a");
            link.href = base_url + "/" + page.location;
            link.textContent = page.title;
            const heading = document.createElement("h3");
            heading.append(link);
            const text = document.createElement("p");
            text.textContent = page.text.slice(Math.max(0, at - 60), Math.max(0, at) + 140);
            list.append(heading, text);
        }
    });
}

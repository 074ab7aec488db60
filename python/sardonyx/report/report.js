/* Draws the plots in the page's colours, one after the other so that the page stays responsive;
   switches views, themes and CSV downloads. data-plots and data-errors on <html> say how it went. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.dataset.errors = "0";
  addEventListener("error", () => { root.dataset.errors = String(Number(root.dataset.errors) + 1); });
  addEventListener("unhandledrejection", () => {
    root.dataset.errors = String(Number(root.dataset.errors) + 1);
  });

  const plots = JSON.parse(document.getElementById("plots").textContent);
  const places = [...document.querySelectorAll("[data-plot]")];
  const narrow = (place) => place.clientWidth < 560;
  const config = (name, place) => ({
    responsive: true,
    displayModeBar: narrow(place) ? false : "hover",
    displaylogo: false,
    // Named one by one: Plotly's own set has a button that sends the figure to its company.
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: name },
  });

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function themed(layout, place) {
    const ink = colour("--ink"), soft = colour("--soft"), grid = colour("--grid");
    const dressed = {
      ...layout,
      autosize: true,
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: soft, font: { color: ink, size: 13 } },
      modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink },
      transition: { duration: 0 },
    };
    const axes = Object.keys(layout).filter((name) => /^[xy]axis/.test(name));
    for (const axis of new Set(["xaxis", "yaxis", ...axes])) {
      const own = layout[axis] || {};
      dressed[axis] = {
        gridcolor: grid, linecolor: grid, zerolinecolor: colour("--line"), dividercolor: grid,
        showgrid: own.type !== "category" && own.type !== "multicategory",
        ...own,
        ...(own.minor ? { minor: { gridcolor: grid, ...own.minor } } : {}),
        title: { ...(own.title || {}), font: { color: soft, size: 12.5 } },
      };
    }
    if (narrow(place)) {
      dressed.margin = { ...layout.margin, l: 48, r: 8 };
      if (layout.yaxis.type === "category") {  // long names stand above their lines
        dressed.margin.l = 8;
        dressed.height = 1.55 * layout.height;
        Object.assign(dressed.xaxis, { nticks: 6 });
        Object.assign(dressed.yaxis, { showticklabels: false, automargin: false });
        dressed.annotations = layout.yaxis.categoryarray.map((name) => ({
          text: name, xref: "paper", x: 0, xanchor: "left", y: name, yshift: 14, showarrow: false,
        }));
      }
    }
    return dressed;
  }

  const chosen = new Map();
  function draw(place) {
    const name = place.dataset.plot;
    const view = plots[name].views[chosen.get(name) || 0];
    return Plotly.react(place, view.data, themed(view.layout, place), config(name, place));
  }
  const drawAll = () => Promise.all(places.map(draw));

  for (const select of document.querySelectorAll("select[data-for]")) {
    select.addEventListener("change", () => {
      chosen.set(select.dataset.for, Number(select.value));
      draw(places.find((place) => place.dataset.plot === select.dataset.for));
    });
  }

  // Theme: as the system says, or as the reader says.
  const button = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  let theme = 0;
  button.addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    if (theme === 0) delete root.dataset.theme; else root.dataset.theme = themes[theme];
    button.textContent = `Theme: ${themes[theme]}`;
    drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

  // Paper is light and narrower than a screen.
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    for (const place of places) {
      const view = plots[place.dataset.plot].views[chosen.get(place.dataset.plot) || 0];
      Plotly.react(place, view.data, { ...themed(view.layout, { clientWidth: 660 }), autosize: false, width: 660,
        height: view.layout.yaxis.type === "category" || view.layout.grid ? view.layout.height : 300 },
        { displayModeBar: false });
    }
  });
  addEventListener("afterprint", () => {
    if (before === undefined) delete root.dataset.theme; else root.dataset.theme = before;
    drawAll();
  });

  // Every data table can be saved as CSV, with unrounded values.
  for (const table of document.querySelectorAll("table[data-name]")) {
    const bar = document.createElement("div");
    bar.className = "bar";
    const save = document.createElement("button");
    save.type = "button";
    save.textContent = "Save as CSV";
    save.addEventListener("click", () => {
      const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const lines = [...table.rows].map((row) =>
        [...row.cells].map((cell) => quoted(cell.dataset.v ?? cell.innerText.trim())).join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = `${table.dataset.name}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    bar.append(save);
    table.parentElement.before(bar);
  }

  // Mark in the navigation what is being read.
  const links = new Map([...document.querySelectorAll("nav a.sub")].map((a) => [a.hash.slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }, { rootMargin: "-20% 0px -60% 0px" });
  for (const article of document.querySelectorAll("article.figure")) seen.observe(article);

  const started = performance.now();
  let drawn = 0;
  (function next() {
    if (drawn === places.length) {
      root.dataset.plots = String(drawn);
      root.dataset.milliseconds = String(Math.round(performance.now() - started));
      return;
    }
    draw(places[drawn++]).then(() => setTimeout(next, 0));
  })();
})();

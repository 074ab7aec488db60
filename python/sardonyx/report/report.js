/* Draws the plots in the page's colours, one after the other so that the page stays responsive;
   switches views, themes and CSV downloads. data-plots and data-errors on <html> say how it went. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.dataset.errors = "0";
  const count = () => { root.dataset.errors = String(Number(root.dataset.errors) + 1); };
  addEventListener("error", count);
  addEventListener("unhandledrejection", count);

  const plots = JSON.parse(document.getElementById("plots").textContent);
  const places = [...document.querySelectorAll("[data-plot]")];
  const narrow = (place) => place.clientWidth < 560;
  const PAPER = 660;
  const config = (name, place) => ({
    responsive: true,
    displayModeBar: narrow(place) ? false : "hover",
    displaylogo: false,
    // Named one by one: Plotly's own set has a button that sends the figure to its company.
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    toImageButtonOptions: { format: "svg", filename: name },
  });

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function themed({ data, layout }, place) {
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
      if (layout.yaxis?.type === "category") {  // long names stand above their lines
        dressed.margin.l = 8;
        dressed.height = 1.55 * layout.height;
        Object.assign(dressed.xaxis, { nticks: 6 });
        Object.assign(dressed.yaxis, { showticklabels: false, automargin: false });
        const names = layout.yaxis.categoryarray ?? [...new Set(data.flatMap((trace) => trace.y))];
        dressed.annotations = names.map((name) => ({
          text: name, xref: "paper", x: 0, xanchor: "left", y: name, yshift: 14, showarrow: false,
        }));
      }
    }
    return dressed;
  }

  /* The view of a figure that is to be drawn: the chosen one, or the first of those that are left. */
  function viewOf(place, name) {
    const article = place.closest("article"), select = article.querySelector("select[data-for]");
    if (!plots[name].views.length) throw new Error("it has no view");
    const all = filter.figure(plots[name].views);
    let at = filter.views.get(name) || 0;
    if (!all[at]) at = all.findIndex(Boolean);
    if (select) {
      [...select.options].forEach((option, n) => { option.hidden = option.disabled = !all[n]; });
      select.value = String(at);
    }
    article.classList.toggle("chosen", at > 0 || filter.active());
    filter.tell(article, plots[name].views);
    return all[at];
  }
  function say(place, text, name) {
    const line = document.createElement("p");
    line.className = name;
    line.textContent = text;
    Plotly.purge(place);
    place.replaceChildren(line);
  }
  /* Draws one plot; a line stands in place of one that cannot be drawn, and the others go on. */
  async function draw(place, onPaper = false) {
    const name = place.dataset.plot;
    try {
      const view = viewOf(place, name);
      place.querySelector(".failed, .missing")?.remove();
      if (!view) {
        say(place, "Nothing of what is chosen is in this picture.", "missing");
        return;
      }
      if (onPaper) {
        const { layout } = view;
        const height = layout.yaxis?.type === "category" || layout.grid ? layout.height : 300;
        const size = { autosize: false, width: PAPER, height };
        await Plotly.react(place, view.data, { ...themed(view, { clientWidth: PAPER }), ...size },
          { displayModeBar: false });
      } else {
        await Plotly.react(place, view.data, themed(view, place), config(name, place));
      }
    } catch (error) {
      count();
      console.error(error);
      say(place, `This plot could not be drawn (${error.message}); the table below has its figures.`, "failed");
    }
  }
  const drawAll = () => Promise.all(places.map((place) => draw(place)));

  for (const select of document.querySelectorAll("select[data-for]")) {
    select.addEventListener("change", () => {
      filter.views.set(select.dataset.for, Number(select.value));
      filter.remember();
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
    // A picture for paper is there already; where the reader chose another view, that is drawn.
    for (const place of places) if (place.closest(".chosen")) draw(place, true);
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
      const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      // A name that begins so would be a formula of the spreadsheet that opens the file.
      const inert = (text) => (/^[=+\-@\t\r]/.test(text) && isNaN(text) ? `'${text}` : text);
      const said = (cell) => inert(cell.dataset.v ?? [...cell.childNodes]
        .filter((node) => node.className !== "sign").map((node) => node.textContent).join("").trim());
      // A column of a table is one of each unit in it, then one of halves of intervals.
      const rows = [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].filter((cell) => !cell.hidden));
      const columns = rows[0].flatMap((head, at) => {
        const cells = rows.slice(1).map((row) => row[at]);
        const units = new Set(cells.filter((cell) => cell.dataset.v).map((cell) => cell.dataset.u ?? ""));
        if (!units.size) return [[said(head), ...cells.map(said)]];
        const found = [...units].map((unit) => [unit ? `${said(head)} (${unit})` : said(head),
          ...cells.map((cell) => (!cell.dataset.v || (cell.dataset.u ?? "") === unit ? said(cell) : ""))]);
        if (!cells.some((cell) => cell.dataset.half)) return found;
        return [...found, [`${said(head)} ±`, ...cells.map((cell) => cell.dataset.half ?? "")]];
      });
      const lines = rows.map((_, at) => columns.map((column) => quoted(column[at])).join(","));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = `${table.dataset.name}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    bar.append(save);
    table.parentElement.before(bar);
  }

  // What is unfolded gets its width then; a link to a figure unfolds what hides it.
  for (const more of document.querySelectorAll("details.more")) {
    more.addEventListener("toggle", () => {
      if (more.open) for (const place of more.querySelectorAll("[data-plot]")) draw(place);
    });
  }
  const reveal = () => {
    const place = document.getElementById(filter.place()), more = place?.closest("details.more");
    if (more && !more.open) more.open = true;
    if (more || filter.active()) place?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  filter.listen(() => places.filter((place) => place.offsetParent).forEach((place) => draw(place)));
  reveal();

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

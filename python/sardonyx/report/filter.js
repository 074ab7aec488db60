/* Which workloads and designs the reader looks at: the address has them, as in
   #write-speedup?design=baseline&design=esd, and every picture and table follows. A mean is of what is left; of one
   trace there is none. What cannot follow says that it is of all. */
const filter = (() => {
  "use strict";
  const KINDS = ["workload", "design"];
  const names = JSON.parse(document.getElementById("names").textContent);
  const hidden = { workload: new Set(), design: new Set() };
  const views = new Map();  // the chosen view of each figure
  const listeners = [];
  const active = (kind) => hidden[kind].size > 0;
  const left = (kind) => names[kind].filter((name) => !hidden[kind].has(name));

  /* The workload and the design that a text names, alone or as one of its parts. */
  function named(text, first = "design") {
    const found = {};
    for (const part of [text, ...text.split(/, |: | = |; /)]) {
      const of = KINDS.filter((kind) => names[kind].includes(part));
      const kind = of.length > 1 ? (found[first] === undefined ? first : KINDS.find((one) => one !== first)) : of[0];
      if (kind) found[kind] ??= part;
    }
    return found;
  }
  const gone = (found) => KINDS.some((kind) => hidden[kind].has(found[kind]));

  function mean(values, kind) {
    const known = values.filter((value) => typeof value === "number" && !isNaN(value));
    if (!known.length) return null;
    if (kind === "arithmetic") return known.reduce((a, b) => a + b) / known.length;
    if (Math.min(...known) <= 0) return null;
    return Math.exp(known.reduce((sum, value) => sum + Math.log(value), 0) / known.length);
  }

  // ---- pictures

  const plain = (text) => String(text ?? "").replace(/<\/?b>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
  const MEANS = { "<b>mean</b>": "arithmetic", "<b>geo. mean</b>": "geometric" };
  const ALL = "mean of all traces";
  const along = (trace) => (trace.orientation === "h" ? "y" : "x");
  const places = (trace) => {
    const at = trace[along(trace)];
    if (!Array.isArray(at)) return [];
    return Array.isArray(at[0]) ? at[0].map((_, n) => at.map((level) => level[n])) : at.map((one) => [one]);
  };
  const at = (place) => KINDS.reduce((found, kind) => found ?? place.map((each) => named(plain(each), "workload"))
    .find((each) => each[kind]), undefined) ?? {};

  /* The members of a trace that have a value for each place, with only those that are kept. */
  function picked(value, count, keep) {
    if (Array.isArray(value)) {
      if (value.length && Array.isArray(value[0])) return value.map((each) => picked(each, count, keep));
      return value.length === count ? keep.map((n) => value[n]) : value;
    }
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, picked(each, count, keep)]));
    }
    return value;
  }

  function narrowed(trace) {
    const found = places(trace);
    if (!found.length || typeof found[0][0] !== "string") return trace;
    const keep = found.map((_, n) => n).filter((n) => !gone(at(found[n])));
    const workloads = keep.filter((n) => at(found[n]).workload !== undefined);
    const kept = active("workload") && workloads.length < 2 ? keep.filter((n) => !MEANS[found[n][0]]) : keep;
    if (kept.length === found.length) return trace;
    const across = along(trace), value = across === "x" ? "y" : "x";
    const made = { ...picked(trace, found.length, kept) };
    if (active("workload")) {
      made[value] = made[value].map((old, n) => (MEANS[found[kept[n]][0]]
        ? mean(workloads.map((each) => trace[value][each]), MEANS[found[kept[n]][0]]) : old));
    }
    return made;
  }

  /* A mean over all traces, made of the other views: one a workload, or one a design with its mean. */
  function averaged(view, others) {
    const ofDesigns = others.some((each) => named(each.name).design);
    return view.data.map((trace) => {
      const same = (each) => narrowedView(each)?.data.find((one) => one.name === trace.name);
      const value = along(trace) === "x" ? "y" : "x";
      if (!ofDesigns) {
        const all = others.map(same).filter(Boolean);
        return { ...trace, [value]: trace[value].map((_, n) => mean(all.map((one) => one[value][n]), "arithmetic")) };
      }
      const last = (design) => {
        const of = others.find((each) => plain(each.name) === plain(design));
        return of ? (same(of)?.[value].at(-1) ?? 0) : null;
      };
      const kept = narrowed(trace);
      return { ...kept, [value]: kept[along(trace)].map(last) };
    });
  }

  /* Panels that hold nothing are taken out, and the others closed up. */
  function closedUp(data, layout) {
    if (!layout.grid) return layout;
    const used = [...new Set(data.map((trace) => trace.xaxis ?? "x"))].map((name) => name.slice(1));
    const all = Object.keys(layout).filter((key) => key.startsWith("xaxis")).map((key) => key.slice(5));
    if (used.length === all.length || !used.length) return layout;
    const made = Object.fromEntries(Object.entries(layout).filter(([key]) => !/^[xy]axis/.test(key)));
    const number = (n) => (n ? String(n + 1) : "");
    used.forEach((old, n) => {
      made[`xaxis${number(n)}`] = layout[`xaxis${old}`];
      made[`yaxis${number(n)}`] = layout[`yaxis${old}`];
    });
    const moved = (name) => name && `${name[0]}${number(used.indexOf(name.slice(1).split(" ")[0]))}${name.includes(" ") ? " domain" : ""}`;
    for (const trace of data) Object.assign(trace, { xaxis: moved(trace.xaxis ?? "x"), yaxis: moved(trace.yaxis ?? "y") });
    made.annotations = (layout.annotations ?? []).filter((one) => used.includes(one.xref.slice(1).split(" ")[0]))
      .map((one) => ({ ...one, xref: moved(one.xref), yref: moved(one.yref) }));
    if (data.length && !data.some((trace) => trace.showlegend)) {
      for (const trace of data) trace.showlegend = trace.xaxis === data[0].xaxis;
    }
    const columns = Math.min(layout.grid.columns, used.length);
    const rows = Math.ceil(used.length / columns);
    return { ...made, grid: { ...layout.grid, rows, columns }, height: layout.height * rows / layout.grid.rows };
  }

  function narrowedView(view, others = []) {
    if (gone(named(plain(view.name), "workload"))) return null;
    let data = view.data.filter((trace) => !gone({ ...named(plain(trace.name)), ...trace.meta?.of }) && !trace.meta?.whole);
    data = plain(view.name) === ALL && active("workload") ? averaged({ ...view, data }, others) : data.map(narrowed);
    // A stack has no part for what is nowhere.
    const nowhere = (trace) => view.layout.barmode === "stack" && trace.type === "bar" && !trace.y.some(Boolean);
    data = data.filter((trace) => trace[along(trace)]?.length !== 0 && !nowhere(trace)).map((trace) => ({ ...trace }));
    if (!data.length) return null;
    const layout = { ...closedUp(data, view.layout) };
    for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name) && layout[name].categoryarray)) {
      layout[key] = { ...layout[key], categoryarray: layout[key].categoryarray.filter((one) => !gone(at([one]))) };
    }
    return { ...view, data, layout };
  }

  /* The views of a figure as they are to be drawn, or null where nothing of one is left. */
  function figure(all) {
    if (!KINDS.some(active)) return all;
    const made = all.map((view) => narrowedView(view, all.filter((each) => each !== view)));
    const whole = all.findIndex((view) => plain(view.name) === ALL);
    // A mean over one trace is that trace: it stands once.
    if (whole >= 0 && names.workload.length > 1 && left("workload").length === 1) {
      const others = all.findIndex((view) => named(plain(view.name), "workload").workload) >= 0;
      return made.map((view, n) => ((n === whole) === others ? null : view));
    }
    return made;
  }

  // ---- tables

  const WORDS = /^(workload|trace|program|design|subject)s?$/;
  const text = (cell) => [...cell.childNodes].filter((node) => node.nodeName !== "SMALL" && node.className !== "dagger"
    && node.className !== "sign").map((node) => node.textContent).join("").replace(/\u2011/g, "-").trim();
  const said = (cell) => (cell.dataset.v && isNaN(cell.dataset.v) ? cell.dataset.v : text(cell));
  const MEAN = /^(arithmetic|geometric) mean(?:, |$)/;

  const three = (value) => (Math.abs(Number(value.toPrecision(3))) < 1000 ? value.toPrecision(3)
    : Math.round(value).toLocaleString("en-US"));
  const scaled = (value, sizes) => {
    const [size, name] = sizes.find(([each]) => Math.abs(Number(value.toPrecision(3))) >= each) ?? sizes.at(-1);
    return `${three(value / size)} ${name}`;
  };
  /* A value as Python's tables write it. */
  function written(value, unit) {
    if (value === null) return "–";
    if (unit === "share") return value !== 0 && Math.abs(value) < 0.01 ? `${Number((100 * value).toPrecision(3))} %` : `${(100 * value).toFixed(1)} %`;
    if (unit === "×") return `${value.toFixed(Math.abs(value) < 100 ? 2 : 0)}×`;
    if (unit === "GB/s") return `${three(value)} GB/s`;
    if (unit === "ns") return scaled(value, [[1e6, "ms"], [1e3, "µs"], [1, "ns"]]);
    if (unit === "number" && Math.abs(value) >= 1000) return scaled(value, [[1e9, "G"], [1e6, "M"], [1e3, "k"]]);
    if (unit === "number") return value.toFixed(0);
    if (unit === "bare") return String(Number(value.toPrecision(3)));
    if (unit === "nJ") return scaled(value, [[1e9, "J"], [1e6, "mJ"], [1e3, "µJ"], [1, "nJ"]]);
    if (Number.isInteger(value)) return value.toLocaleString("en-US");
    return Math.abs(value) < 1e6 ? Number(value.toPrecision(4)).toLocaleString("en-US", { maximumSignificantDigits: 4 })
      : Math.round(value).toLocaleString("en-US");
  }

  const original = new Map(), kept = new Map();  // cells, and classes of cells, as they were written
  function put(cell, value, unit) {
    if (!original.has(cell)) original.set(cell, [cell.innerHTML, cell.dataset.v, cell.dataset.half]);
    const swatch = cell.querySelector(".dagger")?.outerHTML ?? "";
    cell.innerHTML = `${swatch}${written(value, unit)}`;
    cell.dataset.v = value ?? "";
    delete cell.dataset.half;
  }
  function restore() {
    for (const [cell, [html, value, half]] of original) {
      cell.innerHTML = html;
      if (value === undefined) delete cell.dataset.v; else cell.dataset.v = value;
      if (half !== undefined) cell.dataset.half = half;
    }
    original.clear();
    for (const [cell, classes] of kept) cell.className = classes;
    kept.clear();
  }

  /* What each row of a table names, its columns, and the kind of its means. */
  function read(table) {
    const heads = [...table.tHead.rows[0].cells].map(text);
    const own = heads.map((head, n) => n === 0 || WORDS.test(head) || head === "what");
    const rows = [...table.tBodies[0].rows].map((row) => {
      const found = {};
      [...row.cells].forEach((cell, n) => {
        if (!own[n]) return;
        const first = /^(workload|trace|program|subject)/.test(heads[n]) ? "workload" : "design";
        Object.assign(found, named(said(cell), first));
        if (cell.querySelector("small")) Object.assign(found, named(cell.querySelector("small").textContent));
      });
      const label = said(row.cells[0]);
      const rest = found.workload === undefined ? label.replace(MEAN, "") : label.slice(found.workload.length + 2);
      return { row, found, rest, mean: label.match(MEAN)?.[1] };
    });
    return { table, heads, rows, columns: heads.map((head, n) => (n ? named(head.replace(/ ±$/, "")) : {})) };
  }
  let tables;

  function narrowTable({ rows, columns, table }) {
    for (const { row, found } of rows) {
      row.hidden = gone(found);
      [...row.cells].forEach((cell, n) => { cell.hidden = gone(columns[n] ?? {}); });
    }
    [...table.tHead.rows[0].cells].forEach((cell, n) => { cell.hidden = gone(columns[n]); });
    if (!active("workload")) return;
    for (const { row, rest, mean: kind } of rows) {
      if (!kind || row.hidden) continue;
      const of = rows.filter((each) => each.found.workload !== undefined && each.rest === rest && !each.row.hidden);
      row.hidden = of.length < 2;
      [...row.cells].forEach((cell, n) => {
        if (cell.dataset.v === undefined || !n) return;
        const values = of.map((each) => each.row.cells[n].dataset.v).filter((each) => each !== "").map(Number);
        put(cell, mean(values, kind), cell.dataset.u ?? of[0]?.row.cells[n].dataset.u ?? "");
      });
    }
  }

  /* The summary's means, from the table of every trace below it. */
  function summarise(summary, every) {
    const signs = [...summary.table.tHead.rows[0].cells].map((head) => head.querySelector(".sign")?.textContent);
    const baseline = summary.rows.find(({ found }) => found.design === "baseline")?.row;
    if (active("workload")) {
      for (const { row, found } of summary.rows) {
        const of = every.rows.filter((each) => each.found.design === found.design && !each.row.hidden);
        [...row.cells].forEach((cell, n) => {
          if (n && cell.dataset.v !== undefined) fill(cell, of.map((each) => each.row.cells[every.heads.lastIndexOf(summary.heads[n])]),
            summary.table.matches(".arithmetic"), row !== baseline && baseline?.cells[n]);
        });
      }
    }
    const legend = summary.table.closest(".scroll").nextElementSibling;
    if (legend?.matches(".reading")) {
      const count = active("workload") ? `${left("workload").length} of ${names.workload.length}` : String(names.workload.length);
      legend.textContent = legend.textContent.replace(/(^O|o)ver (\d+ of )?\d+ (workload|program)/, `$1ver ${count} $3`);
    }
    signs.forEach((sign, n) => {
      const cells = summary.rows.filter(({ row }) => row !== baseline && !row.hidden).map(({ row }) => row.cells[n]);
      const known = cells.filter((cell) => cell.dataset.v), value = (cell) => Number(cell.dataset.v);
      if (!sign || !known.length || !KINDS.some(active)) return;
      for (const { row } of summary.rows) {
        if (!kept.has(row.cells[n])) kept.set(row.cells[n], row.cells[n].className);
        row.cells[n].classList.remove("best");
      }
      const best = Math[sign === "↑" ? "max" : "min"](...known.map(value));
      const worse = known[0].dataset.u === "×" && (sign === "↑" ? best < 1 : best > 1);
      if (cells.length > 1 && !worse) for (const cell of known) cell.classList.toggle("best", value(cell) === best);
    });
  }
  /* A mean of these cells; of one it is that one. */
  function fill(cell, of, arithmetic, baseline) {
    const beside = cell.querySelector("small");
    const unit = cell.dataset.u || of.find((each) => each.dataset.u)?.dataset.u || "";
    const values = of.map((each) => each.dataset.v).filter((each) => each).map(Number);
    const value = mean(values, arithmetic || unit === "share" ? "arithmetic" : "geometric");
    put(cell, value, unit || (/ [kMG]$/.test(text(of[0] ?? cell)) ? "number" : "bare"));
    if (of.length === 1) {
      cell.innerHTML = of[0].innerHTML;
      if (of[0].dataset.half) cell.dataset.half = of[0].dataset.half;
    }
    if (beside && value && baseline?.dataset.v) {
      cell.append(Object.assign(document.createElement("small"), { textContent: written(value / baseline.dataset.v, "×") }));
    }
  }

  // ---- what is shown, and the address

  const asked = () => {
    const [place, query = ""] = location.hash.slice(1).split("?");
    return [decodeURIComponent(place), new URLSearchParams(query)];
  };
  function parse() {
    const [, query] = asked();
    for (const kind of KINDS) {
      const wanted = names[kind].filter((name) => query.getAll(kind).includes(name));
      hidden[kind] = new Set(wanted.length ? names[kind].filter((name) => !wanted.includes(name)) : []);
    }
    views.clear();
    for (const view of query.getAll("view")) views.set(view.replace(/-\d+$/, ""), Number(view.match(/\d+$/)?.[0] ?? 1) - 1);
  }
  function address(place) {
    const query = new URLSearchParams();
    for (const kind of KINDS) if (active(kind)) for (const name of left(kind)) query.append(kind, name);
    for (const [key, view] of views) if (view) query.append("view", `${key}-${view + 1}`);
    const hash = query.size ? `#${place}?${query}` : place ? `#${place}` : location.pathname + location.search;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }

  const words = (kind) => {
    const shown = left(kind);
    if (!active(kind)) return `all ${shown.length} ${kind}s`;
    return shown.length === 1 ? shown[0] : `${shown.length} of ${names[kind].length} ${kind}s`;
  };
  const offered = KINDS.filter((kind) => names[kind].length > 1);
  let panel;
  function build() {
    if (!offered.length) return;
    panel = document.createElement("details");
    panel.id = "filter";
    panel.append(document.createElement("summary"));
    for (const kind of offered) {
      const set = document.createElement("fieldset");
      const legend = document.createElement("legend");
      legend.textContent = `${kind[0].toUpperCase()}${kind.slice(1)}s`;
      set.append(legend, ...names[kind].map((name) => {
        const line = document.createElement("label"), box = document.createElement("input");
        Object.assign(box, { type: "checkbox", name: kind, value: name, autocomplete: "off" });
        line.append(box, ` ${name}`);
        return line;
      }));
      panel.append(set);
    }
    const all = document.createElement("button");
    Object.assign(all, { type: "button", textContent: "Show all" });
    all.addEventListener("click", () => { for (const kind of KINDS) hidden[kind].clear(); changed(); });
    panel.append(all);
    panel.addEventListener("change", ({ target }) => {
      const kind = target.name;
      if (target.checked) hidden[kind].delete(target.value); else hidden[kind].add(target.value);
      if (!left(kind).length) hidden[kind].delete(target.value);  // of nothing there is no picture
      changed();
    });
    document.querySelector("nav .brand").after(panel);
  }

  function apply() {
    restore();
    tables ??= [...document.querySelectorAll("table")].map(read);
    for (const each of tables) narrowTable(each);
    const every = tables.find((each) => each.table.matches(".every"));
    const summary = tables.find((each) => each.table.matches("#summary .summary"));
    if (every && summary && every !== summary) summarise(summary, every);
    for (const { table, rows, columns } of tables) {
      const follows = (kind) => rows.some((each) => each.found[kind]) || columns.some((each) => each[kind])
        || (every && table === summary?.table);
      const figure = table.closest("article");
      if (!figure && table.matches(".summary, .claims")) tell(table.closest(".scroll"), follows);
    }
    for (const note of document.querySelectorAll("header .note")) tell(note, () => false);
    if (!panel) return;
    panel.querySelector("summary").textContent = `Shown: ${offered.map(words).join(", ")}`;
    for (const box of panel.querySelectorAll("input")) box.checked = !hidden[box.name].has(box.value);
    document.documentElement.dataset.shown = offered.map(words).join(", ");
  }
  /* Says of a place which filters it does not follow. */
  function tell(place, follows) {
    // What is of workloads only, as their duplicates, is of no design.
    const not = KINDS.filter((kind) => active(kind) && !follows(kind) && !(kind === "design" && follows("workload")));
    if (not.length) place.dataset.of = `Of all ${not.map((kind) => `${kind}s`).join(" and ")}: `;
    else delete place.dataset.of;
  }
  /* Whether anything of a figure's views is of workloads, or of designs. */
  const follows = (all) => (kind) => all.some((view) => named(plain(view.name), "workload")[kind] || view.data.some((trace) =>
    named(plain(trace.name))[kind] || trace.meta?.of?.[kind] || places(trace).some((each) => typeof each[0] === "string" && at(each)[kind])));

  function changed() {
    address(asked()[0]);
    apply();
    for (const each of listeners) each();
  }
  addEventListener("hashchange", () => {
    const [place, query] = asked();
    if (query.size) {
      parse();
      apply();
      for (const each of listeners) each();
      document.getElementById(place)?.scrollIntoView();
    } else address(place);  // a link of the page keeps what is shown
  });
  parse();
  build();
  apply();
  return {
    figure, written, views, active: () => KINDS.some(active), place: () => asked()[0], listen: (listener) => listeners.push(listener),
    remember: () => address(asked()[0]), tell: (place, all) => tell(place, follows(all)),
  };
})();

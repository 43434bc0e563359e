// Sorts tables, shows the steps of the trade-off, switches colours and unfolds details for printing.
// Texts are inserted as text, never as HTML. Numbers arrive formatted.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const all = (query, within = document) => [...within.querySelectorAll(query)];

  // Colours: the reader's system decides until somebody presses the button; nothing is stored.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const toggle = document.querySelector("[data-theme-toggle]");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameToggle = () => { toggle.textContent = isDark() ? "Light colours" : "Dark colours"; };
  toggle.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameToggle();
  });
  dark.addEventListener("change", nameToggle);
  nameToggle();

  // Sorting: numbers by value, texts by the alphabet; unknown values are always last.
  const read = (row, column) => {
    const cell = row.children[column];
    if (cell.dataset.sort !== undefined) return Number(cell.dataset.sort);
    return cell.classList.contains("number") ? null : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  const sortBy = (table, column) => {
    const heads = all("thead th", table);
    const down = heads[column].getAttribute("aria-sort") === "ascending";
    heads.forEach((head, i) => {
      head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending");
    });
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [row, read(row, column)]);
    rows.sort(([, a], [, b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return down ? compare(b, a) : compare(a, b);
    });
    body.append(...rows.map(([row]) => row));
  };
  const makeSortable = (table) => {
    all("thead th", table).forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.title = "Sort by this column";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => sortBy(table, column));
    });
  };
  all("table[data-sortable]").forEach(makeSortable);

  // The trade-off: the report contains the finished texts of every step.
  const slider = document.getElementById("step");
  const show = (place, steps, panel) => {
    const step = steps[place];
    panel.querySelector("[data-sentence] bdi").textContent = step.sentence;
    slider.setAttribute("aria-valuetext", step.sentence);
    all("[data-field]", panel).forEach((field) => {
      field.textContent = step.fields[field.dataset.field];
    });
    panel.querySelector("[data-marker]").setAttribute("transform", `translate(${step.at.join(" ")})`);
    panel.querySelector("[data-described]").textContent = step.described;
    fill(panel.querySelector("[data-part=segments]"), step.segments);
    const card = panel.querySelector("[data-part=card]");
    fill(card, step.card, step.more);
  };
  const fill = (part, rows, more = "") => {
    const table = part.querySelector("table");
    table.hidden = !rows.length;
    const labels = all("thead th", table).map((head) => head.textContent);
    all("thead th[aria-sort]", table).forEach((head) => head.setAttribute("aria-sort", "none"));
    table.tBodies[0].replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      line.setAttribute("role", "row");
      line.append(...row.map((content, i) => cell(content, labels[i], i === 0)));
      return line;
    }));
    const rest = part.querySelector(".more");
    rest.textContent = more;
    rest.hidden = !more;
  };
  const cell = ([text, note, kind, tone, sort], label, isFirst) => {
    const made = document.createElement(isFirst ? "th" : "td");
    made.setAttribute("role", isFirst ? "rowheader" : "cell");
    if (isFirst) made.scope = "row";
    made.dataset.label = label;
    if (kind === "number") made.className = "number";
    if (sort !== undefined) made.dataset.sort = sort;
    const inner = document.createElement("span");
    inner.className = "cell";
    const shown = document.createElement("bdi");
    shown.textContent = text;
    if (tone) shown.className = `tone ${tone}`;
    inner.append(shown);
    if (note) {
      const small = document.createElement("small");
      small.append(Object.assign(document.createElement("bdi"), { textContent: note }));
      inner.append(small);
    }
    made.append(inner);
    return made;
  };
  if (slider) {
    const steps = JSON.parse(document.getElementById("steps").textContent);
    const panel = document.querySelector("[data-step]");
    const update = () => show(Number(slider.value), steps, panel);
    slider.addEventListener("input", update);
    all("[data-move]").forEach((button) => {
      button.addEventListener("click", () => {
        slider.value = Number(slider.value) + Number(button.dataset.move);
        update();
      });
    });
    update();
  }
  all("details[data-fold]").forEach((details) => { details.open = false; });

  // Nobody can unfold details on paper, so printing unfolds all of them.
  let folded = [];
  const unfold = () => {
    folded = folded.concat(all("details:not([open])"));
    folded.forEach((details) => { details.open = true; });
  };
  const fold = () => {
    folded.forEach((details) => { details.open = false; });
    folded = [];
  };
  addEventListener("beforeprint", unfold);
  addEventListener("afterprint", fold);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? unfold() : fold()));
})();

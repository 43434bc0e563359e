// Shows the state of the exploration and sends what the user changes. The server keeps the rows and
// computes everything. Texts are inserted as text, never as HTML.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const get = (id) => document.getElementById(id);
  let version = 0;
  let place = 0;
  let lockable = [];

  // Elements ---------------------------------------------------------------------------------

  const make = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  };
  const fill = (id, ...children) => get(id).replaceChildren(...children);
  const name = (text) => make("bdi", {}, text);
  const paragraph = (text, kind = "") => make("p", kind ? { class: kind } : {}, name(text));

  const table = (data) => {
    const made = make("table", { class: `${data.columns.length > 3 ? "stack " : ""}${data.key}`, role: "table" });
    made.append(make("caption", {}, data.caption));
    const heads = data.columns.map((column) => make("th", { scope: "col", role: "columnheader" }, column));
    made.append(make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...heads)));
    made.append(make("tbody", { role: "rowgroup" }, ...data.rows.map((row) => make(
      "tr", { role: "row" },
      ...row.map((content, i) => cell(content, data.columns[i], i === 0)),
    ))));
    return made;
  };
  const cell = ([text, note, kind, tone], label, isFirst) => make(
    isFirst ? "th" : "td",
    { scope: isFirst ? "row" : null, role: isFirst ? "rowheader" : "cell", "data-label": label, class: kind === "number" ? "number" : null },
    make("span", { class: "cell" }, make("bdi", tone ? { class: `tone ${tone}` } : {}, text),
      ...(note ? [make("small", {}, name(note))] : [])),
  );
  const plainTable = (heads, rows) => make("table", { class: "plain" },
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows.map(([first, ...others]) => make("tr", {},
      make("th", { scope: "row" }, first), ...others.map((text) => make("td", {}, text))))));

  const SVG = "http://www.w3.org/2000/svg";
  const SHAPES = ["text", "rect", "path", "line", "circle", "g", "title"];
  const shape = (tag, attributes, text = "") => {
    const made = document.createElementNS(SVG, SHAPES.includes(tag) ? tag : "g");
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const chart = (data) => {
    const made = document.createElementNS(SVG, "svg");
    made.setAttribute("viewBox", `0 0 ${data.width} ${data.height}`);
    made.setAttribute("role", "img");
    made.setAttribute("aria-label", data.label);
    made.append(...data.marks.map(([tag, attributes, text]) => shape(tag, attributes, text)));
    if (data.place) {
      const marker = shape("g", { class: "marker", transform: `translate(${data.place.join(" ")})` });
      marker.append(shape("circle", { r: 8 }), shape("circle", { r: 3.4, class: "core" }));
      made.append(marker);
    }
    return made;
  };

  // Requests -----------------------------------------------------------------------------------

  // A screen reader hears the figures with what was done, and nothing while a slider moves.
  const say = (text, figures = "") => fill("message", text, make("span", { class: "unseen" }, ` ${figures}`));
  const sayStep = (words) => say(words, get("summary").textContent);
  const complain = (text) => {
    get("error").textContent = text;
    get("error").hidden = !text;
  };
  // What the page asks for by itself must not take away the error of what the user did.
  const UNASKED = ["trade_off", "segments", "wishes", "differences", "terms"];
  const ask = async (action, body = {}) => {
    let answer;
    try {
      const response = await fetch(action, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
      answer = await response.json();
      if (response.status === 409) await refresh();
    } catch {
      answer = { error: "The server does not answer. Was it stopped? Start it again and reload the page." };
    }
    if (answer.error || !UNASKED.includes(action)) complain(answer.error || "");
    return answer.error ? null : answer;
  };
  const signed = (body) => ({ version, by: get("by").value, note: get("note").value, ...body });

  // The state ----------------------------------------------------------------------------------

  const show = (state) => {
    if (!state) return;
    const isAnother = state.version !== version;
    version = state.version;
    showStep(state.step);
    if (!state.screen) return;
    place = state.place;
    get("undo").disabled = !place;
    get("redo").disabled = place + 1 === state.history.length;
    showHistory(state.history);
    showScreen(state.screen);
    lockable = state.request.columns;
    if (isAnother || !settled) [before, settled] = [settled, new Map(state.card.terms.map((one) => [one.name, one.points]))];
    showCard(state.card, before);
    showRequest(state.request);
    get("compare").hidden = !state.compared;
    if (state.compared) {
      fill("compared",
        plainTable(["Figure", "Kept", "Present"], state.compared.rows),
        paragraph(state.compared.sentence), table(state.compared.groups));
    }
    showLater();
  };
  const showHistory = (steps) => {
    const at = get("history").contains(document.activeElement) ? place : -1;
    fill("history", ...steps.map((one, i) => {
      const button = make("button", { type: "button", "aria-label": `Return to step ${i + 1}: ${one.words}` }, name(one.words));
      button.disabled = i === place;
      button.addEventListener("click", goTo(() => i));
      return make("li", i === place ? { "aria-current": "step", tabindex: -1 } : {}, button,
        make("span", {}, one.figures), make("small", {}, name(one.origin)));
    }));
    if (at >= 0) get("history").children[at].focus();
  };

  const showScreen = (screen) => {
    fill("lead", name(screen.lead), " ", make("span", { class: screen.reached ? "reached" : "missed" },
      `${screen.reached ? "✓" : "✗"} The target ${screen.verdict}.`));
    get("summary").textContent = `${screen.summary} · ${screen.reached ? "✓" : "✗"} the target ${screen.verdict}`;
    get("notice").hidden = !screen.notice;
    fill("notice", make("h3", {}, "▼ Most of the changes are losses"), paragraph(screen.notice));
    fill("figures", ...screen.figures.map((figure) => make("div", {},
      make("dt", {}, name(figure.title)),
      make("dd", { class: "big" }, figure.big),
      ...figure.texts.map(([tone, text]) => make("dd", {}, make("bdi", tone ? { class: `tone ${tone}` } : {}, text))))));
    get("without-losses").hidden = !screen.offers_gains_only;
    fill("sentences", ...screen.sentences.map((text) => paragraph(text, "sentence")));
    get("rates-title").textContent = screen.chart_title;
    fill("rates", chart(screen.chart));
    fill("in-words", ...screen.in_words.map((text) => paragraph(text, "in-words")));
    fill("groups", table(screen.rates));
    fill("small-groups", ...(screen.small_groups ? [table(screen.small_groups)] : []));
  };

  // Trade-off and rules take longer: they follow when the rest is on the screen.
  let later = 0;
  const LATER = [
    ["trade_off", "frontier", (curve) => {
      map = curve;
      showMap();
      fill("steps", table(curve.table));
    }],
    ["segments", "segments", (rules) => fill("segments", ...(rules.table.rows.length ? [table(rules.table)] : []),
      ...rules.sentences.map((text) => paragraph(text)))],
    ["differences", "differences", (others) => fill("differences",
      ...(others.table.rows.length ? [table(others.table)] : []), ...others.sentences.map((text) => paragraph(text)))],
    ["wishes", "wishes", (prices) => fill("wishes",
      prices.rows.length ? plainTable(["Wish", "What it costs", "Changes without it"], prices.rows)
        : paragraph("The request has a target and no further wish."),
      ...(prices.left ? [paragraph(`${prices.left} more to come.`, "hint")] : []))],
  ];
  const showLater = () => {
    clearTimeout(later);
    LATER.forEach(([, id]) => get(id).setAttribute("aria-busy", "true"));
    later = setTimeout(async () => {
      const seen = version;
      for (const [action, id, showPart] of LATER) {
        let part = { left: action !== "differences" || !get("compare").hidden };
        if (!part.left) fill(id);
        while (part.left) {
          part = isAsking ? { outdated: true } : await ask(action);
          if (!part || seen !== version) return;
          if (part.outdated) { // the hand moves: what it asks for goes first
            showLater();
            return;
          }
          showPart(part);
        }
        get(id).setAttribute("aria-busy", "false");
      }
    }, 400);
  };

  // The points of the map are buttons: each fits for its target.
  let map = null;
  const showMap = () => {
    const kind = get("map-of").value;
    get("map-kind").hidden = !map.charts.accuracy;
    const drawn = chart(map.charts[map.charts[kind] ? kind : "changes"]);
    const at = [...document.querySelectorAll(".pick")].indexOf(document.activeElement);
    drawn.setAttribute("role", "group");
    drawn.append(...map.picks.map(({ target, words, places }) => {
      const [cx, cy] = places[kind] || places.changes;
      const pick = shape("circle", { cx, cy, r: 12, class: "pick", role: "button", tabindex: 0, "aria-label": words });
      const fit = () => begin("fit", () => ({ version, request: { target } }));
      pick.append(shape("title", {}, words));
      pick.addEventListener("click", fit);
      pick.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        fit();
      });
      return pick;
    }));
    fill("frontier", drawn);
    if (at >= 0) drawn.querySelectorAll(".pick")[Math.min(at, map.picks.length - 1)].focus();
  };
  get("map-of").addEventListener("change", showMap);

  const showStep = (step) => {
    get("job").hidden = !step;
    if (step) get("step-now").textContent = `A fit is running: ${step}.`;
  };

  // The scorecard --------------------------------------------------------------------------------

  const showCard = (card, earlier) => {
    if (soon) return; // a slider is moving
    get("intercept").textContent = card.intercept;
    get("card-rule").textContent = card.rule;
    get("points-sign").textContent = card.sign;
    const focus = document.activeElement;
    const key = focus && focus.dataset.term !== undefined ? [focus.dataset.term, focus.dataset.part] : null;
    get("terms").tBodies[0].replaceChildren(...card.terms.map((one) => (
      termRow(one, card.whole, earlier !== null && (earlier.get(one.name) ?? 0) !== one.points)
    )));
    if (card.whole !== isWhole) {
      isWhole = card.whole;
      get("step").value = isWhole ? "1" : "0.1";
    }
    get("left-out").hidden = !card.left_out;
    get("left-out").textContent = card.left_out ? `${card.left_out} more terms: find them by name.` : "";
    const wasInColumns = get("columns").contains(focus);
    const columns = [...new Set(card.terms.filter((one) => one.points).map((one) => one.column))];
    if (!get("search").value) {
      fill("columns", ...columns.map((column) => make("li", {}, name(column), columnButton(column))));
    }
    if (wasInColumns) (get("columns").querySelector("button") || get("columns")).focus();
    if (!key) return;
    const again = [...document.querySelectorAll("[data-term]")]
      .find((one) => one.dataset.term === key[0] && one.dataset.part === key[1]);
    if (again) again.focus();
  };
  let isWhole = false;
  // The points of the present update and of the one before it: lines that moved are marked.
  let settled = null;
  let before = null;
  const columnButton = (column) => {
    const kind = lockable.includes(column) ? "lock" : "drop"; // the score is no column to lock
    const words = kind === "lock" ? "Lock" : "Drop";
    const button = make("button", { type: "button", "aria-label": `${words} ${column}` }, words);
    button.title = kind === "lock" ? "Take the column out; later searches must not read it either" : "Take it out";
    button.addEventListener("click", () => edit([{ edit: kind, name: column }]));
    return button;
  };
  const termRow = (one, whole, hasMoved) => {
    const id = { "data-term": one.name };
    const number = make("input", { ...id, "data-part": "number", type: "number", step: whole ? "1" : "any", "aria-label": `Points of ${one.shown}` });
    number.value = String(Number(one.points.toPrecision(6)));
    const range = make("input", {
      ...id, "data-part": "range", type: "range", min: -one.reach, max: one.reach, step: whole ? 1 : one.reach / 200,
      "aria-label": `Move the points of ${one.shown}`,
    });
    range.value = String(one.points);
    const drop = make("button", { ...id, "data-part": "drop", type: "button", "aria-label": `Drop ${one.shown}` }, "Drop");
    drop.disabled = !one.points;
    const set = (points) => ({ edit: "set", name: one.name, points });
    number.addEventListener("change", () => {
      if (number.value !== "" && Number.isFinite(number.valueAsNumber)) edit([set(number.valueAsNumber)]);
    });
    range.addEventListener("input", () => {
      number.value = String(Number(range.valueAsNumber.toPrecision(6)));
      preview({ edits: [set(range.valueAsNumber)], offset: get("offset").value });
    });
    range.addEventListener("change", () => editSoon([set(range.valueAsNumber)]));
    range.addEventListener("blur", () => editNow());
    drop.addEventListener("click", () => edit([set(0)]));
    const unit = one.per_unit ? " per unit" : "";
    const kind = [one.edited && "edited", hasMoved && "moved"].filter(Boolean).join(" ");
    return make("tr", { class: kind || null },
      make("th", { scope: "row" }, name(one.shown), one.edited ? " (edited)" : ""),
      make("td", {}, number, unit), make("td", { class: "move" }, range),
      make("td", {}, one.fitted_text), make("td", {}, drop));
  };

  // While a slider moves, one preview is under way at a time, and the last one wins.
  let waiting = null;
  let isAsking = false;
  const preview = async (body) => {
    waiting = body;
    if (isAsking) return;
    isAsking = true;
    while (waiting) {
      const sent = waiting;
      waiting = null;
      const answer = await ask("preview", sent);
      if (!answer || isEditing) continue;
      showScreen(answer.screen);
      if (sent.request) showCard(answer.card, settled);
    }
    isAsking = false;
  };
  // Changes go out one after the other: each names the version that the one before has made.
  let isEditing = false;
  let turn = Promise.resolve();
  const inTurn = (change) => {
    turn = turn.then(async () => {
      isEditing = true;
      try { await change(); } finally { isEditing = false; }
    });
    return turn;
  };
  const edit = (edits) => inTurn(async () => {
    waiting = null;
    const state = await ask("edit", signed({ edits, offset: get("offset").value }));
    if (state) {
      show(state);
      sayStep(`Edited: ${state.history[place].words}.`);
      complain("");
    } else {
      await refresh();
    }
    await search();
  });
  // Each key moves a slider by one step; all steps until a pause are one edit.
  let soon = null;
  let pause = 0;
  const editNow = () => {
    clearTimeout(pause);
    const edits = soon;
    soon = null;
    if (edits) edit(edits);
  };
  const editSoon = (edits) => {
    soon = edits;
    clearTimeout(pause);
    pause = setTimeout(editNow, 250);
  };
  get("round").addEventListener("click", () => edit([{ edit: "round", step: get("step").valueAsNumber }]));
  get("cap-all").addEventListener("click", () => {
    const most = get("cap").valueAsNumber;
    edit([{ edit: "cap", low: -most, high: most, name: null }]);
  });
  const search = async () => {
    const text = get("search").value.trim();
    if (!text) return;
    const card = await ask("terms", { search: text });
    if (card && get("search").value.trim() === text) showCard(card, before);
  };
  let typing = 0;
  get("search").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => (get("search").value.trim() ? search() : refresh()), 200);
  });

  // The request ----------------------------------------------------------------------------------

  const NUMBERS = ["target", "borderline", "max_lines", "max_margin", "max_changes", "max_accuracy_loss"];
  const ranges = [...document.querySelectorAll("[data-for]")];
  let isLive = false;
  const showRequest = (request) => {
    isLive = request.live;
    if (get("request").contains(document.activeElement)) return;
    const choices = request.choices.map((choice) => make("option", { value: choice }, choice.replaceAll("_", " ")));
    if (request.constraints === null) choices.unshift(make("option", { value: "" }, "as stated"));
    fill("constraints", ...choices);
    get("constraints").value = request.constraints ?? "";
    NUMBERS.forEach((key) => { get(key).value = request[key] ?? ""; });
    ranges.forEach((range) => {
      if (range.dataset.for === "target") [range.min, range.max] = request.targets;
      range.value = request[range.dataset.for] ?? range.max;
    });
    get("direction").value = request.direction;
    get("points").value = request.points;
    fill("locked", ...request.columns.map((column) => {
      const box = make("input", { type: "checkbox", value: column });
      box.checked = request.locked.includes(column);
      return make("label", {}, box, name(column));
    }));
  };
  const asked = () => {
    const request = {
      constraints: get("constraints").value || null,
      direction: get("direction").value,
      points: get("points").value,
      locked: [...get("locked").querySelectorAll("input:checked")].map((box) => box.value),
    };
    NUMBERS.forEach((key) => {
      const given = get(key).value;
      request[key] = given === "" ? null : Number(given);
    });
    return request;
  };
  // A slider fits while it moves, and keeps the fit when it rests; every other control fits once.
  ranges.forEach((range) => range.addEventListener("input", () => {
    const isOpen = "open" in range.dataset && range.value === range.max; // no limit
    get(range.dataset.for).value = isOpen ? "" : range.value;
    if (isLive) preview({ request: asked() });
  }));
  const fitAsked = () => begin("fit", () => signed({ request: asked() }));
  let resting = 0;
  get("request").addEventListener("change", (event) => {
    clearTimeout(resting);
    if (event.target.dataset.for) resting = setTimeout(fitAsked, 250); // each key moves it by one step
    else fitAsked();
  });
  get("request").addEventListener("submit", (event) => event.preventDefault());
  get("gains-only").addEventListener("click", () => begin("fit", () => signed({ request: { direction: "gains_only" } })));
  get("refit").addEventListener("click", () => begin("refit", () => signed({})));
  const begin = (action, body) => inTurn(async () => {
    waiting = null;
    look();
    const state = await ask(action, body());
    show(state);
    if (state) sayStep(`${state.history[place].words}.`);
    else showStep(null);
  });

  // Steps, files and people --------------------------------------------------------------------

  const goTo = (next) => () => inTurn(async () => {
    const state = await ask("go", { version, place: next() });
    show(state);
    if (state) sayStep(`Now: ${state.history[place].words}.`);
  });
  get("undo").addEventListener("click", goTo(() => place - 1));
  get("redo").addEventListener("click", goTo(() => place + 1));
  get("keep").addEventListener("click", () => inTurn(async () => {
    const state = await ask("keep");
    show(state);
    if (state) say("Kept. Later updates are shown beside this one.");
  }));
  get("save").addEventListener("click", async () => {
    say("Preparing the files: all figures are measured.");
    const file = await ask("save", { by: get("by").value });
    if (!file) return;
    const bytes = Uint8Array.from(atob(file.base64), (one) => one.charCodeAt(0));
    const address = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
    make("a", { href: address, download: file.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    say(`Saved ${file.name}: patch, report and history, with ${file.edits}. Whoever signs the patch notes its SHA-256: ${file.sha256}`);
  });
  get("python").addEventListener("click", async () => {
    const answer = await ask("python", { by: get("by").value });
    if (!answer) return;
    get("code").value = answer.text;
    try {
      await navigator.clipboard.writeText(answer.text);
      say("Copied. The text is also at the end of the page.");
    } catch {
      get("code").focus();
      get("code").select();
      say("The browser does not let pages copy. The text is selected: press Ctrl+C.");
    }
  });
  get("person").addEventListener("submit", async (event) => {
    event.preventDefault();
    const given = get("who").value.trim();
    const isRow = get("kind").value === "row";
    const answer = await ask("person", isRow ? { row: /^\d+$/.test(given) ? Number(given) : given } : { id: given });
    if (!answer) return;
    fill("reasons", paragraph(answer.sentence),
      ...(answer.reasons.length ? [make("h3", {}, "Points against the mean of the fit rows"), make("ul", {}, ...answer.reasons.map((text) => make("li", {}, name(text))))] : []),
      ...(answer.alternatives.length ? [make("h3", {}, "Other values that would lead to the other decision"), make("ul", {}, ...answer.alternatives.map((text) => make("li", {}, name(text))))] : []));
  });

  // Colours: the reader's system decides until somebody presses the button; nothing is stored.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { get("theme").textContent = isDark() ? "Light colours" : "Dark colours"; };
  get("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  // Another tab may change the state; while a fit runs, only its step is shown.
  const refresh = async () => {
    const response = await fetch("state", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    if (response.ok) show(await response.json());
  };
  let looking = 0;
  const look = async () => {
    clearTimeout(looking);
    try {
      if (!document.hidden) {
        const response = await fetch("state", {
          method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ seen: version }),
        });
        const state = await response.json();
        if (!isEditing) show(state);
        else showStep(state.step);
      }
    } catch {
      complain("The server does not answer. Was it stopped? Start it again and reload the page.");
    }
    looking = setTimeout(look, isEditing ? 300 : 2000);
  };
  refresh().then(look);
})();

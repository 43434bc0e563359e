// Sends what the user does and shows the answers. The server keeps the rows, computes everything
// and writes the HTML: each element of an answer takes the place of the one with the same id.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const get = (id) => document.getElementById(id);
  let version = 0;

  // Show an answer ------------------------------------------------------------------------------

  // Make an element like another one. What has not changed stays, and so does the focus.
  const morph = (old, made) => {
    const isAnother = old.nodeName !== made.nodeName || old.id !== made.id || old.dataset?.term !== made.dataset?.term;
    if (isAnother) {
      old.replaceWith(made);
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== made.data) old.data = made.data;
      return;
    }
    const keepsValue = old === document.activeElement || ("kept" in old.dataset && old.defaultValue === made.defaultValue);
    const isOpened = (name) => old.localName === "details" && name === "open";
    for (const name of old.getAttributeNames()) {
      if (!made.hasAttribute(name) && !isOpened(name)) old.removeAttribute(name);
    }
    for (const name of made.getAttributeNames()) {
      if (old.getAttribute(name) !== made.getAttribute(name) && !isOpened(name)) old.setAttribute(name, made.getAttribute(name));
    }
    const wanted = [...made.childNodes];
    const present = [...old.childNodes];
    wanted.forEach((child, i) => (i < present.length ? morph(present[i], child) : old.append(child)));
    present.slice(wanted.length).forEach((child) => child.remove());
    if (keepsValue || !old.matches("input, select")) return;
    old.value = made.value;
    old.checked = made.checked;
  };

  // Where a focused element has gone, what held it gets the focus.
  const show = (html, isShown = () => true) => {
    const path = [];
    for (let one = document.activeElement; one; one = one.parentElement) if (one.id) path.push(one.id);
    const made = new DOMParser().parseFromString(html, "text/html").body;
    for (const one of [...made.querySelectorAll(":scope > [id]")]) if (isShown(one.id)) morph(get(one.id), one);
    for (const id of path) {
      if (document.activeElement !== document.body) return;
      get(id)?.focus({ preventScroll: true });
    }
  };

  const say = (words) => { get("message").textContent = words; };
  const complain = (words) => {
    get("error").textContent = words;
    get("error").hidden = !words;
  };
  const showStep = (step) => {
    get("job").hidden = !step;
    if (step) get("step-now").textContent = `A fit is running: ${step}.`;
  };

  // Ask the server ------------------------------------------------------------------------------

  // What the page asks for by itself must not take away the error of what the user did.
  const UNASKED = ["state", "terms", "trade_off", "segments", "wishes", "differences"];
  const ask = async (action, body = {}) => {
    let answer;
    try {
      const headers = { "Content-Type": "application/json" };
      const response = await fetch(action, { method: "POST", headers, body: JSON.stringify(body) });
      answer = await response.json();
    } catch {
      answer = { error: "The server does not answer. Was it stopped? Start it again and reload the page." };
    }
    if (answer.error || !UNASKED.includes(action)) complain(answer.error || "");
    return answer.error ? null : answer;
  };

  // The parts of a slider that moves, and of a search, are shown when it ends.
  const isShown = (id) => !(["request", "terms"].includes(id) && resting) && !(id === "terms" && searched());
  const showState = (state) => {
    if (!state || state.version < version) return;
    showStep(state.step);
    version = state.version;
    if (!state.html) return;
    show(state.html, isShown);
    showLater();
    search();
  };
  const refresh = async (seen = {}) => showState(await ask("state", seen));

  // Changes go out one after the other: each names the version that the one before has made.
  let isChanging = false;
  let turn = Promise.resolve();
  const change = (action, body) => {
    turn = turn.then(async () => {
      isChanging = true;
      waiting = null;
      look();
      const told = ["go", "keep"].includes(action) ? {} : { by: get("by").value, note: get("note").value };
      const state = await ask(action, { version, ...told, ...body() });
      isChanging = false;
      showStep(null);
      if (!state) {
        await refresh();
        return;
      }
      showState(state);
      // A screen reader hears the figures with what was done, and nothing while a slider moves.
      say(action === "keep" ? "Kept. Later updates are shown beside this one." : `${SAID[action]}: ${state.words}.`);
      const figures = document.createElement("span");
      figures.className = "unseen";
      figures.textContent = ` ${get("summary").textContent}`;
      get("message").append(figures);
    });
  };
  const SAID = { go: "Now", edit: "Edited", fit: "Fitted", refit: "Fitted" };

  // While a slider moves, one preview is under way at a time, and the last one wins. One that
  // comes after a change is dropped: it was computed beside what was shown before.
  let waiting = null;
  let isAsking = false;
  const preview = async (body) => {
    waiting = body;
    if (isAsking) return;
    isAsking = true;
    while (waiting) {
      const [sent, seen] = [waiting, version];
      waiting = null;
      const answer = await ask("preview", sent);
      if (answer && !isChanging && seen === version) show(answer.html, (id) => sent.request || !["terms", "columns"].includes(id));
    }
    isAsking = false;
  };

  // Parts that take longer follow when the rest is on the screen; they are given up for a move.
  const LATER = { trade_off: "frontier", segments: "segments", differences: "differences", wishes: "wishes" };
  let later = 0;
  const showLater = () => {
    clearTimeout(later);
    Object.values(LATER).forEach((id) => get(id).setAttribute("aria-busy", "true"));
    later = setTimeout(async () => {
      const seen = version;
      for (const action of Object.keys(LATER)) {
        let left = action !== "differences" || get("compared").children.length;
        while (left) {
          const part = isAsking ? { outdated: true } : await ask(action);
          if (!part || seen !== version) return;
          if (part.outdated) {
            showLater();
            return;
          }
          show(part.html);
          left = part.left;
        }
      }
    }, 400);
  };

  // What controls ask for -----------------------------------------------------------------------

  const asked = () => {
    const request = { locked: [] };
    for (const { name, type, value, checked } of get("request").elements) {
      if (checked) request.locked.push(value);
      else if (name) request[name] = type === "number" && value ? Number(value) : value || null;
    }
    return request;
  };
  const wishOf = ({ dataset, value }) => (dataset.term === undefined
    ? { request: asked() }
    : { edits: [{ edit: "set", name: dataset.term, points: value ? Number(value) : null }], offset: get("offset").value });
  const ALL_TERMS = {
    round: () => ({ edit: "round", step: get("step").valueAsNumber }),
    cap: () => ({ edit: "cap", low: -get("cap").valueAsNumber, high: get("cap").valueAsNumber, name: null }),
  };

  // Each key moves a slider by one step: all steps until a pause are one change.
  let resting = null;
  let pause = 0;
  const rest = () => {
    clearTimeout(pause);
    const control = resting;
    resting = null;
    if (!control) return;
    const body = wishOf(control);
    change(body.request ? "fit" : "edit", () => body);
  };
  document.addEventListener("input", ({ target }) => {
    if (target.id === "search") {
      clearTimeout(pause);
      pause = setTimeout(() => (searched() ? search() : refresh()), 200);
    }
    if (target.type !== "range") return;
    const isOpen = "open" in target.dataset && target.value === target.max; // no limit
    get(target.dataset.for).value = isOpen ? "" : String(Number(target.valueAsNumber.toPrecision(6)));
    if ("live" in get("request").dataset) preview(wishOf(target));
  });
  document.addEventListener("change", ({ target }) => {
    if (!target.closest("#request, #terms")) return;
    rest();
    if (target.id === "constraints") {
      const before = [...target.options].find((option) => option.defaultSelected);
      if (before.parentNode !== target.selectedOptions[0].parentNode) get("target").value = ""; // its own default
    }
    resting = target;
    if (target.type === "range") pause = setTimeout(rest, 250);
    else rest();
  });
  document.addEventListener("click", ({ target }) => {
    const control = target.closest("[data-act]:not(form)");
    if (!control) return;
    rest();
    const { act, all } = control.dataset;
    const sent = () => JSON.parse(control.dataset.body || "{}");
    const body = sent(); // what the button stood for when it was pressed; two quick Undos are two steps
    if (act in ALONE) ALONE[act]();
    else if (all) change(act, () => ({ edits: [ALL_TERMS[all]()], offset: get("offset").value }));
    else change(act, () => (act === "go" ? sent() : { ...(act === "edit" && { offset: get("offset").value }), ...body }));
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches(".pick") || !["Enter", " "].includes(event.key)) return;
    event.preventDefault();
    event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  });
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    if (event.target.id === "person") showPerson();
  });
  const searched = () => get("search").value.trim();
  const search = async () => {
    const text = searched();
    const answer = text && await ask("terms", { search: text });
    if (answer && searched() === text && !resting) show(answer.html);
  };

  // People, files and colours --------------------------------------------------------------------

  const showPerson = async () => {
    const given = get("who").value.trim();
    const row = /^\d+$/.test(given) ? Number(given) : given;
    const answer = await ask("person", get("kind").value === "row" ? { row } : { id: given });
    if (answer) show(answer.html);
  };
  const save = async () => {
    say("Preparing the files: all figures are measured.");
    const file = await ask("save", { by: get("by").value });
    if (!file) return;
    const bytes = Uint8Array.from(atob(file.base64), (one) => one.charCodeAt(0));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
    link.download = file.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say(`Saved ${file.name}: patch, report and history, with ${file.edits}. Whoever signs the patch notes its SHA-256: ${file.sha256}`);
  };
  const python = async () => {
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
  };
  // The reader's system decides on colours until somebody presses the button; nothing is stored.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (dark.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { get("theme").textContent = isDark() ? "Light colours" : "Dark colours"; };
  const theme = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  };
  dark.addEventListener("change", nameTheme);
  nameTheme();
  const ALONE = { save, python, theme };

  // Another tab may change the state; while a change is under way, only its step is shown.
  let looking = 0;
  const look = async () => {
    clearTimeout(looking);
    if (!document.hidden) {
      const state = await ask("state", { seen: version });
      if (!isChanging) showState(state);
      else if (state) showStep(state.step);
    }
    looking = setTimeout(look, isChanging ? 300 : 2000);
  };
  refresh().then(look);
})();

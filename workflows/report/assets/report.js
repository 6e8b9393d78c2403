"use strict";
/* The page of a report: its theme, sortable tables, and the example browser. Texts of the data
   reach the page as text nodes only. */
const discorpora = (() => {
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);

  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  /* Theme: that of the system, or the one that was chosen last. */
  const THEMES = ["system", "light", "dark"];
  let theme = "system";
  try { theme = localStorage.getItem("discorpora-theme") || theme; } catch { /* no storage */ }
  function show(chosen) {
    theme = THEMES.includes(chosen) ? chosen : "system";
    root.dataset.theme = theme;
    if ($("theme")) $("theme").textContent = `Theme: ${theme}`;
  }
  show(theme);

  function themes() {
    $("theme").hidden = false;
    show(theme);
    $("theme").addEventListener("click", () => {
      show(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
      try { localStorage.setItem("discorpora-theme", theme); } catch { /* not kept */ }
    });
  }

  /* Tables: a click on a column's head sorts by it, numbers as numbers. */
  function valueOf(cell) {
    const text = cell.textContent.trim();
    const number = parseFloat(text.replaceAll(",", ""));
    return { text, number: text === "" ? NaN : number };
  }

  function sortable(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", "", ...head.childNodes);
      button.type = "button";
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const numeric = head.classList.contains("number");
        const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[column]), row]);
        rows.sort(([one], [two]) => {
          const missing = numeric ? isNaN(one.number) - isNaN(two.number) : 0;
          if (missing) return missing;
          const order = numeric ? one.number - two.number : one.text.localeCompare(two.text, "en");
          return up ? order : -order;
        });
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  /* A table that is wider than the page says that it scrolls. */
  const widths = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      target.classList.toggle("scrolls", target.scrollWidth > target.clientWidth + 1);
    }
  });

  /* Examples */
  const HEIGHT = 84; // of a row of the list, in pixels
  let sets = [], roles = [], current = null, found = new Int32Array(0), chosen = -1;

  function index(about) {
    roles = about.roles;
    sets = about.sets.map((set, number) => ({
      ...set, number, asked: false, texts: [], lower: [], rows: [], offsets: [],
      columns: set.facets.map(() => []), confidences: [], small: set.about.map(() => []), words: [],
    }));
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", browser);
    else browser();
  }

  function add(number, file, chunk) {
    const set = sets[number], offset = set.texts.length;
    const push = (to, from) => { for (const one of from) to.push(one); };
    push(set.texts, chunk.texts);
    for (const text of chunk.texts) set.lower.push(text.toLowerCase());
    push(set.rows, chunk.rows);
    for (const _ of chunk.rows) set.offsets.push(offset);
    chunk.facets.forEach((column, i) => push(set.columns[i], column));
    chunk.about.forEach((column, i) => push(set.small[i], column));
    if (chunk.confidence) push(set.confidences, chunk.confidence);
    chunk.rows.forEach((_, i) => {
      set.words.push(chunk.about.map((column) => column[i]).join(" ").toLowerCase());
    });
    if (set === current) {
      if (file + 1 === set.files) counts();
      apply();
    }
  }

  function load(set) {
    if (set.asked) return;
    set.asked = true;
    for (let file = 0; file < set.files; file += 1) {
      const script = make("script");
      script.async = false; // in this order
      script.src = `data/${set.number}-${String(file).padStart(5, "0")}.js`;
      document.head.append(script);
    }
  }

  function termsOf(query) {
    const parts = query.toLowerCase().match(/["“][^"”]+["”]?|\S+/g) || [];
    return parts.map((part) => part.replace(/["“”]/g, "")).filter(Boolean);
  }

  function matches(set) {
    const terms = termsOf($("query").value);
    const hits = terms.map((term) => {
      const hit = new Uint8Array(set.lower.length);
      for (let i = 0; i < hit.length; i += 1) if (set.lower[i].includes(term)) hit[i] = 1;
      return hit;
    });
    const wanted = [...$("facets").querySelectorAll("select")].map((one) => Number(one.value));
    const least = Number($("least").value || 0), most = Number($("most").value || 1);
    const bounded = set.confidence && (least > 0 || most < 1);
    const kept = [];
    rows: for (let row = 0; row < set.rows.length; row += 1) {
      for (let i = 0; i < wanted.length; i += 1) {
        if (wanted[i] >= 0 && set.columns[i][row] !== wanted[i]) continue rows;
      }
      if (bounded) {
        const value = set.confidences[row];
        if (value === null || value < least || value > most) continue;
      }
      terms: for (let i = 0; i < terms.length; i += 1) {
        if (set.words[row].includes(terms[i])) continue;
        for (const line of set.rows[row]) {
          for (let k = 2; k < line.length; k += 2) {
            if (hits[i][line[k] + set.offsets[row]]) continue terms;
          }
        }
        continue rows;
      }
      kept.push(row);
    }
    const order = set.confidence ? $("order").selectedIndex : 0;
    if (order) {
      const sign = order === 1 ? -1 : 1;
      kept.sort((a, b) => sign * ((set.confidences[a] ?? 0) - (set.confidences[b] ?? 0)) || a - b);
    }
    return Int32Array.from(kept);
  }

  function apply() {
    found = matches(current);
    const { total, shown } = current;
    const loading = current.rows.length < shown ? "; more are being read" : "";
    const part = shown < total ? `, spread over all ${total.toLocaleString("en")}` : "";
    $("count").textContent = `${found.length.toLocaleString("en")} of ` +
      `${current.rows.length.toLocaleString("en")} examples${part}${loading}`;
    $("list").firstChild.style.height = `${found.length * HEIGHT}px`;
    $("list").scrollTop = 0;
    choose(found.length ? 0 : -1);
  }

  function segments(set, row) {
    const spans = [];
    for (const line of set.rows[row]) {
      const parts = [];
      for (let k = 1; k < line.length; k += 2) {
        const text = set.texts[line[k + 1] + set.offsets[row]], role = roles[line[k]];
        parts.push(role === "text" ? text : make("mark", role, text), line[0] === null ? "" : " ");
      }
      spans.push([line[0], parts]);
    }
    return spans;
  }

  function facts(set, row) {
    const listed = set.facets.map(([name, values], i) => [name, values[set.columns[i][row]] ?? ""]);
    if (set.confidence) listed.push(["confidence", set.confidences[row] ?? "not known"]);
    return listed;
  }

  function render() {
    const list = $("list"), inner = list.firstChild;
    const first = Math.max(0, Math.floor(list.scrollTop / HEIGHT) - 4);
    const last = Math.min(found.length, first + Math.ceil(list.clientHeight / HEIGHT) + 9);
    const items = [];
    for (let place = first; place < last; place += 1) {
      const row = found[place];
      const said = facts(current, row).map(([, v]) => v).filter((v) => v !== "").join(" · ");
      const text = make("div", "text");
      for (const [title, parts] of segments(current, row)) {
        if (title) text.append(make("span", "line", title), " ");
        // Of a passage the list shows what begins with the pair.
        const first = title === null ? parts.findIndex((part) => part instanceof Element) : 0;
        text.append(first > 0 ? "… " : "", ...parts.slice(Math.max(first, 0)));
      }
      const item = make("div", "example", make("div", "facts", said), text);
      item.id = `example-${place}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(place === chosen));
      item.setAttribute("aria-setsize", found.length);
      item.setAttribute("aria-posinset", place + 1);
      item.style.top = `${place * HEIGHT}px`;
      item.addEventListener("click", () => choose(place));
      items.push(item);
    }
    inner.replaceChildren(...items);
    if (chosen >= first && chosen < last) {
      list.setAttribute("aria-activedescendant", `example-${chosen}`);
    } else list.removeAttribute("aria-activedescendant");
  }

  function choose(place) {
    chosen = place;
    const list = $("list"), top = place * HEIGHT;
    if (place >= 0 && top < list.scrollTop) list.scrollTop = top;
    if (top + HEIGHT > list.scrollTop + list.clientHeight) {
      list.scrollTop = top + HEIGHT - list.clientHeight;
    }
    render();
    const detail = $("detail");
    detail.replaceChildren();
    if (place < 0) {
      detail.append(make("p", "note", "No example fits."));
      return;
    }
    const row = found[place];
    for (const [title, parts] of segments(current, row)) {
      if (title) detail.append(make("h3", "", title));
      detail.append(make("p", "passage", ...parts));
    }
    const about = make("dl", "facts");
    const small = current.about.map((name, i) => [name, current.small[i][row] ?? ""]);
    for (const [name, value] of [...facts(current, row), ...small]) {
      if (value === "") continue;
      about.append(make("div", "", make("dt", "", name), make("dd", "", String(value))));
    }
    detail.append(about);
  }

  function option(text, value) {
    const element = make("option", "", text);
    element.value = value;
    return element;
  }

  function counts() {
    const selects = [...$("facets").querySelectorAll("select")];
    selects.forEach((select, i) => {
      const numbers = new Int32Array(current.facets[i][1].length);
      for (const value of current.columns[i]) if (value >= 0) numbers[value] += 1;
      [...select.options].slice(1).forEach((one, value) => {
        one.textContent = `${current.facets[i][1][value]} (${numbers[value].toLocaleString("en")})`;
      });
    });
  }

  function open(number) {
    current = sets[number];
    const controls = current.facets.map(([name, values]) => {
      const select = make("select", "", option("any", -1), ...values.map(option));
      select.dataset.facet = name;
      return make("label", "", make("span", "", name), select);
    });
    $("facets").replaceChildren(...controls);
    $("confidence").hidden = !current.confidence;
    for (const one of document.querySelectorAll(".legend mark")) {
      one.hidden = !current.roles.includes(roles.indexOf(one.className));
    }
    if (current.rows.length === current.shown) counts();
    load(current);
    apply();
  }

  function browser() {
    if (!$("browser")) return;
    $("browser").hidden = false;
    $("list").append(make("div"));
    $("list").firstChild.setAttribute("role", "presentation");
    $("set").append(...sets.map((set) => option(set.name, set.number)));
    $("set").addEventListener("change", () => open(Number($("set").value)));
    $("browser").addEventListener("input", (event) => { if (event.target !== $("set")) apply(); });
    $("browser").querySelector("form").addEventListener("submit", (e) => e.preventDefault());
    $("list").addEventListener("scroll", render);
    $("list").addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.floor($("list").clientHeight / HEIGHT) - 1);
      const end = found.length - 1;
      const places = { ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + page,
        PageUp: chosen - page, Home: 0, End: end };
      if (!(event.key in places) || end < 0) return;
      event.preventDefault();
      choose(Math.min(end, Math.max(0, places[event.key])));
    });
    open(0);
  }

  document.addEventListener("DOMContentLoaded", () => {
    themes();
    document.querySelectorAll("main table").forEach(sortable);
    document.querySelectorAll(".table").forEach((table) => widths.observe(table));
  });
  return { index, add };
})();

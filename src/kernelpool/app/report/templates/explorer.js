// Rows and kernels along two features: hover, arrow keys, kernels to choose, classes to toggle, a threshold of ambiguity.
(() => {
  const BOTTOM = 46, TOP = 10, RIGHT = 12, STRIP = 18;
  const make = (parent, name, attributes, text) => {
    const element = document.createElementNS(parent.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const day = (v) => (Math.abs(v) < 1e8 ? new Date(Math.round(v * 86400) * 1000).toISOString().slice(0, 19).replace("T", " ").replace(" 00:00:00", "") : String(v));
  const near = (v, size) => {  // with the digits that a step or deviation of this size has
    if (!(size > 0)) return String(v);
    const place = Math.floor(Math.log10(size) + 1e-9), whole = Math.floor(Math.log10(Math.max(Math.abs(v), size)) + 1e-9);
    return Math.abs(v) < 1e12 && place > -8 ? v.toFixed(Math.max(0, -place)) : v.toExponential(Math.max(0, Math.min(17, whole - place)));
  };
  const percent = (v) => (100 * v).toFixed(1) + " %";
  const ticks = (low, high, date) => {
    const raw = (high - low) / 5, size = 10 ** Math.floor(Math.log10(raw)), step = size * [1, 2, 5, 10].find((m) => m * size >= raw);
    const found = [];
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push([k * step, date ? day(k * step) : near(k * step, step)]);
    return found;
  };
  const start = (root) => {
    const data = JSON.parse(root.dataset.explorer), find = (name) => root.querySelector("." + name);
    const plane = find("plane"), detail = find("detail"), counted = find("counted"), profile = find("profile");
    const n = data.ids.length;
    let colors = data.colors;
    let chosen = -1, at = -1, points = [], W = 720, H = 440;
    const boxes = [...root.querySelectorAll(".classes input")];
    const shown = () => new Set(boxes.filter((box) => box.checked).map((box) => +box.value));
    const ticked = (name) => { const box = find(name); return box !== null && box.checked; };
    const fit = () => {
      const wide = Math.max(300, Math.min(720, Math.round(plane.clientWidth) || 720));
      if (wide === W && plane.hasChildNodes()) return false;
      [W, H] = [wide, wide < 520 ? Math.round(wide * 0.95) : Math.round(wide * 0.61)];
      plane.setAttribute("viewBox", "0 0 " + W + " " + H);
      return true;
    };
    const recolor = (visible) => {  // colors of classes that are not shown go to shown ones that have none
      const used = new Set([...visible].map((k) => data.colors[k])), free = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"].filter((c) => !used.has(c));
      colors = data.colors.map((color, k) => (color === "other" && visible.has(k) && free.length ? free.shift() : color));
      boxes.forEach((box) => { box.parentElement.querySelector(".key").className = "key " + (box.checked ? colors[+box.value] : "other"); });
    };
    const ground = (a, b, px, py, visible, left, bottom) => {
      if (a === b || !data.regions.length) return;
      const k = data.features.length, low = Math.min(a, b), high = Math.max(a, b);
      const runs = data.regions[low * k - (low * (low + 1)) / 2 + high - low - 1], [across, up] = data.grid;
      const edge = (f, n, i) => data.ranges[f][0] + (i / n) * (data.ranges[f][1] - data.ranges[f][0]);
      const inX = (v) => Math.max(left, Math.min(W - RIGHT, v)), inY = (v) => Math.max(TOP, Math.min(bottom, v));
      const paint = (row, from, to, label) => {
        const [s0, s1, t0, t1] = [edge(low, across, from), edge(low, across, to), edge(high, up, row), edge(high, up, row + 1)];
        const [x0, x1, y0, y1] = a === low ? [px(s0), px(s1), py(t1), py(t0)] : [px(t0), px(t1), py(s1), py(s0)];
        const [l, r, t, d] = [inX(x0), inX(x1), inY(y0), inY(y1)];
        if (r > l && d > t && visible.has(label)) make(plane, "rect", { x: l, y: t, width: r - l, height: d - t, class: "region " + colors[label] });
      };
      let at = 0;
      for (let i = 0; i < runs.length; i += 2) {
        for (const end = at + runs[i + 1]; at < end;) {
          const row = Math.floor(at / across), stop = Math.min(end, (row + 1) * across);
          paint(row, at - row * across, stop - row * across, runs[i]);
          at = stop;
        }
      }
    };
    const group = (i) => (data.true[i] >= 0 ? data.true[i] : data.named[i]);
    const describe = (i) => {
      const truth = data.true[i] < 0 ? "" : data.true[i] === data.named[i] ? " (right)" : " (wrong: it is " + data.labels[data.true[i]] + ")";
      const score = data.score[i] === null ? "" : ", log p(x) " + near(data.score[i], 0.1);
      const kernel = data.nearest[i] < 0 ? "" : ", kernel " + data.nearest[i];
      const cell = (v, date) => (v === null ? "missing" : date ? day(v) : String(v));
      const values = data.features.map((feature, f) => feature + " " + cell(data.values[i][f], data.dates[f]));
      const names = Object.entries(data.categories).map(([feature, cells]) => feature + " " + cell(cells[i]));
      detail.textContent = "Row " + data.ids[i] + ": " + data.labels[data.named[i]] + truth + ", ambiguity " + percent(data.ambiguity[i]) + score + kernel + ". " + [...values, ...names].join(", ") + ".";
    };
    const pick = (i) => {
      if (at >= 0 && points[at]) points[at].classList.remove("at");
      at = i;
      if (i >= 0 && points[i]) { points[i].classList.add("at"); describe(i); }
    };
    const show = (kernel) => {
      chosen = chosen === kernel.index ? -1 : kernel.index;
      draw();
      profile.hidden = chosen < 0;
      profile.replaceChildren();
      if (chosen < 0) return;
      const head = document.createElement("h3");
      head.textContent = "Kernel " + kernel.index + ", " + percent(kernel.share) + " of all rows";
      const classes = document.createElement("p");
      classes.textContent = kernel.classes.map((pair) => data.labels[pair[0]] + " " + percent(pair[1])).join(", ");
      const list = document.createElement("ul");
      data.features.forEach((feature, f) => {
        const item = document.createElement("li");
        const mean = kernel.mean[f], width = Math.sqrt(kernel.covariance[f][f]);
        item.textContent = feature + ": " + (data.dates[f] ? day(width > 1 ? Math.round(mean) : mean) : near(mean, width / 10)) + " ± " + near(width, width / 10) + (data.dates[f] ? " days" : "");
        list.append(item);
      });
      const rows = data.nearest.map((j, i) => (j === kernel.index ? i : -1)).filter((i) => i >= 0);
      const members = document.createElement("p");
      members.textContent = rows.length + " of these rows" + (rows.length ? ": " + rows.slice(0, 20).map((i) => data.ids[i]).join(", ") + (rows.length > 20 ? " …" : "") : "");
      profile.append(head, classes, list, members);
    };
    const draw = () => {
      const a = +find("across").value, b = +find("up").value, visible = shown(), level = +find("level").value;
      root.querySelector("output").textContent = percent(level);
      fit();
      recolor(visible);
      plane.replaceChildren();
      points = new Array(n).fill(null);
      const every = [...Array(n).keys()].filter((i) => visible.has(group(i)));
      const inside = every.filter((i) => data.values[i][a] !== null && data.values[i][b] !== null);
      const range = (f) => {  // where most rows are, if a few lie so far out that the others would be a strip
        const column = (inside.length ? inside : [...Array(n).keys()]).map((i) => data.values[i][f]).filter((v) => v !== null).sort((p, q) => p - q);
        const at = (share) => column[Math.round(share * (column.length - 1))];
        const [near, far] = [at(0.05), at(0.95)];
        const most = column.filter((v) => v >= 1.5 * near - 0.5 * far && v <= 1.5 * far - 0.5 * near);
        let [low, high] = [at(0), at(1)];
        if (near < far && most[most.length - 1] - most[0] < 0.5 * (high - low)) [low, high] = [most[0], most[most.length - 1]];
        const margin = 0.05 * (high - low) || Math.abs(high) * 0.05 || 1;
        return [low - margin, high + margin];
      };
      const [x0, x1] = range(a), [y0, y1] = range(b);
      const across = ticks(x0, x1, data.dates[a]), up = ticks(y0, y1, data.dates[b]);
      const LEFT = Math.max(62, 32 + 6.6 * Math.max(0, ...up.map((tick) => tick[1].length)));  // the name of the axis lies left of the labels
      const lacks = (f) => every.some((i) => data.values[i][f] === null);
      const left = LEFT + (lacks(a) ? STRIP : 0), bottom = H - BOTTOM - (lacks(b) ? STRIP : 0);  // missing values lie in the margin
      const px = (v) => (v === null ? LEFT + STRIP / 2 : left + ((v - x0) / (x1 - x0)) * (W - left - RIGHT));
      const py = (v) => (v === null ? H - BOTTOM - STRIP / 2 : bottom - ((v - y0) / (y1 - y0)) * (bottom - TOP));
      if (left > LEFT) { make(plane, "rect", { x: LEFT, y: TOP, width: STRIP - 3, height: H - BOTTOM - TOP, class: "margin" }); make(plane, "text", { x: LEFT, y: H - BOTTOM + 30, "text-anchor": "start" }, "missing"); }
      if (bottom < H - BOTTOM) { make(plane, "rect", { x: LEFT, y: bottom + 3, width: W - RIGHT - LEFT, height: STRIP - 3, class: "margin" }); make(plane, "text", { x: LEFT - 6, y: H - BOTTOM - 4, "text-anchor": "end" }, "missing"); }
      if (ticked("ground")) ground(a, b, px, py, visible, left, bottom);
      const nth = Math.ceil((7 * Math.max(0, ...across.map((tick) => tick[1].length)) + 8) * across.length / (W - left - RIGHT));
      across.forEach(([v, text], i) => {
        make(plane, "line", { x1: px(v), x2: px(v), y1: TOP, y2: bottom, class: "grid" });
        if (i % nth === 0) make(plane, "text", { x: px(v), y: H - BOTTOM + 16, "text-anchor": "middle" }, text);
      });
      for (const [v, text] of up) { make(plane, "line", { x1: left, x2: W - RIGHT, y1: py(v), y2: py(v), class: "grid" }); make(plane, "text", { x: LEFT - 6, y: py(v) + 4, "text-anchor": "end" }, text); }
      make(plane, "text", { x: (W + LEFT) / 2, y: H - 8, "text-anchor": "middle", class: "axis" }, data.features[a]);
      make(plane, "text", { x: 14, y: (H - BOTTOM) / 2, "text-anchor": "middle", class: "axis", transform: "rotate(-90 14 " + (H - BOTTOM) / 2 + ")" }, data.features[b]);
      let accepted = 0, wrong = 0, labeled = 0, beyond = 0;
      for (const i of every) {
        const absent = data.values[i][a] === null || data.values[i][b] === null;
        const refused = data.ambiguity[i] > level;
        if (!refused) { accepted++; if (data.true[i] >= 0) { labeled++; if (data.true[i] !== data.named[i]) wrong++; } }
        const faded = chosen >= 0 && data.nearest[i] !== chosen;
        const [v, w] = [data.values[i][a], data.values[i][b]];
        if (!absent && (v < x0 || v > x1 || w < y0 || w > y1)) beyond++;
        points[i] = make(plane, "circle", { cx: v === null ? px(v) : Math.max(left, Math.min(W - RIGHT, px(v))), cy: w === null ? py(w) : Math.max(TOP, Math.min(bottom, py(w))), r: 3.2, class: "point " + colors[group(i)] + (absent ? " absent" : "") + (refused ? " refused" : "") + (faded ? " faded" : "") + (data.true[i] >= 0 && data.true[i] !== data.named[i] ? " wrong" : "") });
        points[i].addEventListener("mouseenter", () => pick(i));
      }
      counted.textContent = accepted + " of " + every.length + " rows accepted (" + percent(every.length ? accepted / every.length : 0) + ")" + (labeled ? "; " + percent(wrong / labeled) + " of them wrong" : "") + (every.length > inside.length ? "; in " + (every.length - inside.length) + " a value is missing" : "") + (beyond ? "; " + beyond + (beyond > 1 ? " lie" : " lies") + " beyond the edge, where they are drawn" : "");
      const field = make(plane, "svg", { x: left, y: TOP, width: W - left - RIGHT, height: bottom - TOP, viewBox: [left, TOP, W - left - RIGHT, bottom - TOP].join(" ") });
      for (const kernel of ticked("rings") ? data.kernels : data.kernels.filter((k) => k.index === chosen)) {
        const owner = kernel.classes.length ? kernel.classes[0][0] : -1;
        if (owner >= 0 && !visible.has(owner) && chosen !== kernel.index) continue;
        const xx = kernel.covariance[a][a], yy = kernel.covariance[b][b], xy = a === b ? xx : kernel.covariance[a][b];
        const path = [];
        const l11 = Math.sqrt(xx), l21 = l11 > 0 ? xy / l11 : 0, l22 = Math.sqrt(Math.max(yy - l21 * l21, 0));
        for (let t = 0; t < 48; t++) {
          const c = Math.cos((t / 24) * Math.PI), s = Math.sin((t / 24) * Math.PI);
          path.push(px(kernel.mean[a] + l11 * c).toFixed(1) + "," + py(kernel.mean[b] + l21 * c + l22 * s).toFixed(1));
        }
        const ring = make(field, "polygon", { points: path.join(" "), class: "kernel " + (owner < 0 ? "other" : colors[owner]) + (chosen === kernel.index ? " chosen" : ""), tabindex: 0, role: "button", "aria-pressed": chosen === kernel.index, "aria-label": "Kernel " + kernel.index + ", " + percent(kernel.share) + (owner < 0 ? "" : ", mostly " + data.labels[owner]) });
        ring.addEventListener("click", () => show(kernel));
        ring.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); show(kernel); } });
      }
    };
    plane.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const there = [...Array(n).keys()].filter((i) => points[i]);
      if (there.length) pick(there[(there.indexOf(at) + step + there.length) % there.length]);
    });
    root.querySelectorAll("select, input").forEach((control) => control.addEventListener("input", draw));
    root.querySelectorAll(".both button").forEach((button) => button.addEventListener("click", () => {
      boxes.forEach((box) => { box.checked = button.classList.contains("all"); });
      draw();
    }));
    window.addEventListener("resize", () => { if (fit()) draw(); });
    draw();
  };
  document.querySelectorAll(".explorer").forEach(start);
})();

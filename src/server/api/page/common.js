"use strict";
const $ = id => document.getElementById(id);
const make = (tag, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children);
  return node;
};

// The key box appears once the server has asked for a key.
const headers = () => $("key").value ? {authorization: "Bearer " + $("key").value} : {};
async function ask(path, body, signal) {
  const request = body === undefined ? {headers: headers()} : {method: "POST", signal,
    headers: {"content-type": "application/json", ...headers()}, body: JSON.stringify(body)};
  const response = await fetch(path, request);
  if (response.status === 401) $("access").hidden = false;
  if (response.ok) return response;
  const reply = await response.json().catch(() => ({}));
  throw new Error(reply.error?.message ?? response.statusText);
}

// Tabs: a tab's panel is the element that it controls.
const shown = id => !$(id).hidden && !document.hidden;
function choose(tab) {
  for (const other of tab.parentNode.children) {
    other.setAttribute("aria-selected", other === tab);
    other.tabIndex = other === tab ? 0 : -1;
    $(other.getAttribute("aria-controls")).hidden = other !== tab;
  }
  $("answers-card").hidden = $("decide").hidden;
}
for (const list of document.querySelectorAll("[role=tablist]")) {
  for (const tab of list.children) {
    tab.type = "button";
    tab.onclick = () => choose(tab);
    tab.onkeydown = event => {
      const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
      if (!step) return;
      const tabs = [...list.children];
      const next = tabs[(tabs.indexOf(tab) + step + tabs.length) % tabs.length];
      choose(next);
      next.focus();
    };
  }
  choose(list.children[0]);
}

// A line of text that grows with its content, so that long questions wrap.
function line(attributes) {
  const area = make("textarea", {rows: 1, ...attributes});
  area.classList.add("line");
  const fit = () => {
    area.style.height = "auto";
    area.style.height = area.scrollHeight + 2 + "px";
  };
  area.addEventListener("input", fit);
  area.onkeydown = event => { if (event.key === "Enter") { event.preventDefault(); area.form.requestSubmit(); } };
  new ResizeObserver(fit).observe(area);
  return area;
}

async function about() {
  const {version} = await (await fetch("version")).json();
  $("about").textContent = "version " + version;
  const {data} = await (await ask("v1/models")).json();
  $("model").replaceChildren(...data.map(m => make("option", {value: m.id}, m.id)));
}
$("access").onsubmit = event => {
  event.preventDefault();
  about().then(() => { $("access").hidden = true; }, () => {});
};

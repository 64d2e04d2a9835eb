"use strict";
// Puts the newest page in the place of the old one, as long as the page is visible; without it the page is the same.
const SECONDS = 2;
async function refresh() {
  try {
    const answer = await fetch(location.pathname, { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const page = document.getElementById("page"), scrolled = [...page.querySelectorAll(".scroll")].map((it) => it.scrollTop);
    const open = [...page.querySelectorAll("details")].map((it) => it.open);
    page.replaceChildren(...fresh.getElementById("page").childNodes);
    page.querySelectorAll("details").forEach((it, i) => { it.open = open[i] ?? false; });
    page.querySelectorAll(".scroll").forEach((it, i) => { it.scrollTop = scrolled[i] ?? 0; });
    document.title = fresh.title;
  } catch {
    document.getElementById("stale").hidden = false;
  }
}
setInterval(() => { if (!document.hidden && getSelection().isCollapsed) refresh(); }, SECONDS * 1000);

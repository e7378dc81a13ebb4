"use strict";
// Everything works without this script. It shows each time in the zone of the reader, too.
for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  if (!Number.isNaN(moment.getTime())) {
    time.title = moment.toLocaleString();
  }
}
// One button chooses every record of the list, or none.
for (const form of document.querySelectorAll("form.choice")) {
  const boxes = form.querySelectorAll("input[name=record]");
  const all = document.createElement("button");
  all.type = "button";
  all.textContent = "Choose all";
  all.addEventListener("click", () => {
    const chosen = [...boxes].every((box) => box.checked);
    boxes.forEach((box) => (box.checked = !chosen));
  });
  form.querySelector("p.acts").prepend(all, " ");
}

"use strict";
// Everything works without this script. It shows each time in the zone of the reader, too.
for (const time of document.querySelectorAll("time[datetime]")) {
  const moment = new Date(time.dateTime);
  if (!Number.isNaN(moment.getTime())) {
    time.title = moment.toLocaleString();
  }
}

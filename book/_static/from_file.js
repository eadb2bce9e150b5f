/* A page that was opened as a file: browsers run no modules there, so its playgrounds are asleep.
   This script is not a module, and says so below each of them. */
if (location.protocol === "file:") {
  addEventListener("DOMContentLoaded", () => {
    for (const asleep of document.querySelectorAll(".leak, .play")) {
      asleep.insertAdjacentHTML(
        "afterend",
        '<p class="asleep">Opened as a file, this part is asleep: browsers let only served pages ' +
          "run it. In the clone, <code>make read</code> serves the book.</p>",
      );
    }
  });
}

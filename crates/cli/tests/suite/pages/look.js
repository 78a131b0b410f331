// Looks at the page, and tells the window around it. Everything is open: tables behind a click, too.
addEventListener('load', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
  const findings = [];
  const short = text => JSON.stringify(text.trim().slice(0, 60));
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    findings.push(`the page is ${root.scrollWidth} wide in ${root.clientWidth}`);
  }
  const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
    inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const apart = (one, other) => one.left >= other.right - 1 || one.right <= other.left + 1 ||
    one.top >= other.bottom - 2 || one.bottom <= other.top + 2;
  let words = 0;
  const pictures = document.querySelectorAll('svg');
  for (const picture of pictures) {
    const place = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll('text')].map(text => {
      const box = text.getBoundingClientRect();
      // The box has room for accents and descenders, which may touch those of the next line.
      const trim = box.height * 0.15;
      return { text: text.textContent, left: box.left, right: box.right, top: box.top + trim, bottom: box.bottom - trim };
    });
    words += texts.length;
    texts.forEach((one, index) => {
      if (!within(one, place)) findings.push(`${short(one.text)} leaves its picture`);
      for (const other of texts.slice(index + 1)) {
        if (!apart(one, other)) findings.push(`${short(one.text)} lies on ${short(other.text)}`);
      }
    });
  }
  // Words of the page itself: inside of their box, unless that can be scrolled.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || parent.closest('svg, script, style, .wide')) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width && (box.left < -1 || box.right > root.clientWidth + 1)) {
      findings.push(`${short(node.data)} leaves the page`);
    }
  }
  const colour = getComputedStyle(document.body).backgroundColor;
  const light = colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  parent.postMessage(JSON.stringify({
    width: innerWidth, findings, pictures: pictures.length, words, is_dark: light < 3 * 128,
  }), '*');
});

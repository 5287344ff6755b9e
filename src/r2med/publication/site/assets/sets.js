/* The sets of datasets: a group of datasets, scored as published or with overlays. */
"use strict";

pages.sets = (() => {
  /* Return in a few words which labels the scores of a set are made with. */
  /** @type {(set: DatasetSet) => string} */
  const kind = (set) =>
    set.overlays.length ? `with overlay ${pages.visible(set.overlays.join(", "))}` : "as published";

  /* Return true if a reader should know more about the labels than that they are those as published. */
  /** @type {(set: DatasetSet) => boolean} */
  const hasNote = (set) => set.overlays.length > 0 || set.labels !== "as published";

  /* Return one sentence on the labels of a set. */
  /** @type {(set: DatasetSet) => string} */
  const sentence = (set) => pages.visible(`labels ${set.labels}`);

  /* Return the dataset that the explorer opens with if the labels are not those as published. */
  /** @type {(site: Site, set: DatasetSet) => string} */
  const explored = (site, set) => (set.overlays.length ? site.datasets[set.datasets[0]].name : "");

  /* Return why a set has no average; empty if it has one. */
  /** @type {(set: DatasetSet) => string} */
  const noAverage = (set) =>
    set.missing.length
      ? `There is no average, because ${pages.visible(set.missing.join(", "))} ${set.missing.length > 1 ? "have" : "has"} no such labels.`
      : "";

  /**
   * Return the switches for the group and for the labels, each only if there is a choice.
   * @param {DatasetSet[]} offered
   * @param {DatasetSet} set the set that is shown
   * @param {(name: string) => void} go
   */
  function switches(offered, set, go) {
    const groups = [...new Set(offered.map((each) => each.group))];
    const variants = offered.filter((each) => each.group === set.group);
    const inGroup = (group) => {
      const [first, ...others] = offered.filter((each) => each.group === group);
      return [first, ...others].find((each) => kind(each) === kind(set)) ?? first;
    };
    return [
      groups.length > 1
        ? parts.segmented("Datasets", parts.asOptions(groups), set.group, (group) => go(inGroup(group).name))
        : null,
      variants.length > 1
        ? parts.segmented(
            "Labels",
            variants.map((each) => ({ value: each.name, label: kind(each) })),
            set.name,
            go,
          )
        : null,
    ];
  }

  return { kind, hasNote, sentence, explored, noAverage, switches };
})();

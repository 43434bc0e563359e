// The order of search results: pages for users go before records of decisions and the changelog.
const SEARCH_ORDER = [
  [/^(start|how-to\/)/, 4],
  [/^(tutorials|concepts)\//, 2],
  [/^(decisions\/|changelog|contributing)/, -20],
];
var Scorer = {
  score: ([name, , , , score]) =>
    score + SEARCH_ORDER.reduce((sum, [pattern, points]) => sum + (pattern.test(name) ? points : 0), 0),
  // the weights of Sphinx itself
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

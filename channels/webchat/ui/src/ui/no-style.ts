// Stands in for react-style-singleton (see vite.config.ts): a component that shows nothing and writes no style element.
const nothing = () => null
export const styleSingleton = () => nothing
export const styleHookSingleton = () => () => undefined
export const stylesheetSingleton = () => ({ add: () => undefined, remove: () => undefined })

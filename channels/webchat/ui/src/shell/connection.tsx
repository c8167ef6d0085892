// Connection is the line under the header that says when the page is cut off. Filled by the live line's state.
export function Connection() {
  return null
}

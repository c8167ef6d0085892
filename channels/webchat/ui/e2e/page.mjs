// What a person finds on the page, by role and name.
export const composer = page => page.getByRole('textbox', { name: 'Message', exact: true })
export const answers = page => page.getByRole('article', { name: /^Assistant/ })
export const mine = page => page.getByRole('article', { name: /^You/ })
export const sideBar = page => page.getByRole('navigation', { name: 'Chats and pages' })
export const session = (page, title) => sideBar(page).getByRole('link', { name: new RegExp(`^${title}`) })
export const editButton = message => message.getByRole('button', { name: 'Edit message' })
export const againButton = answer => answer.getByRole('button', { name: 'Regenerate answer' })
export const stopButton = page => page.locator('.foot').getByRole('button', { name: /^Stop/ })

// send writes a message and sends it as people do.
export async function send(page, text) {
  await composer(page).fill(text)
  await composer(page).press('Enter')
}

// answered waits for an answer that is whole and says this.
export async function answered(page, text) {
  const answer = answers(page).filter({ hasText: text }).last()
  await answer.getByRole('button', { name: 'Copy answer' }).waitFor({ state: 'attached' })
  return answer
}

// visit goes to another page of the application as a link in it does: nothing is loaded again.
export const visit = (page, where) => page.evaluate(where => {
  history.pushState(null, '', where)
  dispatchEvent(new PopStateEvent('popstate', { state: null }))
}, where)

export const bodyOf = answer => answer.locator('.md')

// openAll opens these, which are so many: each is there before the first is clicked.
export async function openAll(buttons, n) {
  await buttons.nth(n - 1).waitFor()
  for (let i = 0; i < n; i++) await buttons.nth(i).click()
}

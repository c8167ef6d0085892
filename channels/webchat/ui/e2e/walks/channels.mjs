import jsQR from 'jsqr'
import { check, same, until } from '../world.mjs'

const main = page => page.getByRole('main')
const card = (page, name) => main(page).getByRole('article', { name: `Channel ${name}` })
const dialog = page => page.getByRole('dialog', { name: /^Link / })
const code = page => dialog(page).getByAltText('Code to scan with the phone')

// seen is what a phone's camera makes of the screen: undefined where there is no code that it can read.
async function seen(page) {
  const picture = (await code(page).screenshot()).toString('base64')
  const { width, data } = await page.evaluate(async src => {
    const image = new Image()
    image.src = src
    await image.decode()
    const c = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height }).getContext('2d')
    c.drawImage(image, 0, 0)
    const pixels = c.getImageData(0, 0, image.width, image.height).data
    return { width: image.width, data: Array.from({ length: pixels.length / 4 }, (_, i) => (pixels[4 * i] > 127 ? '1' : '0')).join('') }
  }, `data:image/png;base64,${picture}`)
  return jsQR(Uint8ClampedArray.from([...data].flatMap(p => [p * 255, p * 255, p * 255, 255])), width, data.length / width)?.data
}

async function openChannels(w, page) {
  await page.goto(`${w.base}/channels`)
  await main(page).getByRole('article').first().waitFor()
}

export default {
  async 'a phone is linked by scanning the code'(w) {
    const wa = await w.fake('whatsapp')
    await w.start({ config: `channels:\n${wa.channel('wa')}` })
    const page = await w.signedIn()
    await openChannels(w, page)
    await card(page, 'wa').getByText('No WhatsApp account is linked.').waitFor()
    await card(page, 'wa').getByText('Link one with the button below').waitFor()

    let renewed = false // a code is good for a minute, later ones for 20 seconds: here the first renewal comes at once
    await page.route('**/v1/channels/wa/login?after=*', async route => {
      if (renewed) { await route.continue(); return }
      renewed = true
      const now = await w.api('GET', '/v1/channels/wa/login')
      await route.fulfill({ json: { ...now, step: now.step + 1, image: `${now.image}#next`, expires: new Date(Date.now() + 20_000).toISOString() } })
    })
    await card(page, 'wa').getByRole('button', { name: 'Link a phone' }).click()
    await code(page).waitFor()
    same(await page.evaluate(() => document.activeElement?.textContent), 'Cancel', 'where the focus is')
    await until('the code to be renewed', async () => /#next$/.test(await code(page).getAttribute('src')))
    await dialog(page).getByText(/^A new code comes in \d+ s\.$/).waitFor()
    await dialog(page).getByText('Linked devices').waitFor() // what to do on the phone
    const read = await until('a camera to read the code', () => seen(page))
    same(read, (await w.api('GET', '/v1/channels/wa/login')).qr, 'what a camera reads')
    await page.setViewportSize({ width: 360, height: 740 })
    same(await seen(page), read, 'what a camera reads on a narrow screen')
    await page.setViewportSize({ width: 1280, height: 800 })
    await wa.act('scan', read)
    await dialog(page).waitFor({ state: 'detached' })
    await card(page, 'wa').getByText('Connected').waitFor()
    await card(page, 'wa').getByText('4915112340000').waitFor()

    await wa.act('replace') // another program takes the place: this one must not come back by itself
    await card(page, 'wa').getByText('Another program uses this device’s connection'.replace('’', "'")).waitFor()
    await card(page, 'wa').getByText('Stop the other program').waitFor()
    same(await card(page, 'wa').getByRole('button', { name: 'Link a phone' }).count(), 0, 'ways to link what is linked')
    await w.kill()
    await w.run()
    await card(page, 'wa').getByText('Connected').waitFor()
    await wa.act('logout') // on the phone
    await card(page, 'wa').getByText('This device was logged out').waitFor()
    await card(page, 'wa').getByText('Link one with the button below').waitFor()
    await card(page, 'wa').getByRole('button', { name: 'Link a phone' }).waitFor()
  },

  async 'a phone is linked by typing a code'(w) {
    const wa = await w.fake('whatsapp')
    await w.start({ config: `channels:\n${wa.channel('wa')}` })
    const page = await w.signedIn()
    await openChannels(w, page)
    await card(page, 'wa').getByRole('button', { name: 'Link a phone' }).click()
    await code(page).waitFor()
    await wa.act('expire') // three minutes without a scan
    await dialog(page).getByText('before a code was used').waitFor()
    await wa.act('down')
    await dialog(page).getByRole('button', { name: 'Try again' }).click()
    await dialog(page).getByText('WhatsApp cannot be reached').waitFor()
    await wa.act('up')
    await dialog(page).getByRole('button', { name: 'Try again' }).click()
    await code(page).waitFor()

    await w.kill() // with the dialog open
    await dialog(page).getByText('The gateway does not answer').waitFor()
    await w.run()
    await code(page).waitFor() // it goes on by itself

    const number = dialog(page).getByRole('textbox')
    const ask = dialog(page).getByRole('button', { name: 'Get a code to type' })
    await number.fill('call me')
    await ask.click()
    await dialog(page).getByText('is not a phone number with its country code').waitFor()
    await number.fill('+49 151 99 99 99 99')
    await ask.click()
    await dialog(page).getByText('WhatsApp does not know the number').waitFor()
    await number.fill('+49 (1511) 234-0000')
    await ask.click()
    const typed = dialog(page).getByLabel('Code to type on the phone')
    await typed.waitFor()
    await dialog(page).getByText(/^Good for /).waitFor()
    await dialog(page).getByRole('button', { name: 'Show a code to scan instead' }).click()
    await code(page).waitFor()
    await ask.click()
    await typed.waitFor()
    await wa.act('enter', await typed.innerText())
    await dialog(page).waitFor({ state: 'detached' })
    await card(page, 'wa').getByText('Connected').waitFor()

    await card(page, 'wa').getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('dialog', { name: 'Unlink wa?' }).getByRole('button', { name: 'Unlink' }).click()
    await card(page, 'wa').getByText('No WhatsApp account is linked.').waitFor()
    await card(page, 'wa').getByRole('button', { name: 'Link a phone' }).click()
    await code(page).waitFor()
    await dialog(page).getByRole('button', { name: 'Cancel' }).click()
    await dialog(page).waitFor({ state: 'detached' })
    await until('the login to be given up', async () => (await w.api('GET', '/v1/channels/wa/login')).state !== 'waiting')
    const rows = (await w.api('GET', '/v1/audit?kind=channel')).items.map(r => r.kind)
    check(rows.includes('channel.login') && rows.includes('channel.logout'), `the audit log has ${rows}`)
  },
}

import { chromium } from 'playwright-core'

// rebinding is a name of somebody else that leads to this machine.
export const rebinding = 'rebound.example'

// open starts Debian's Chromium, or the one that PARLEY_TEST_CHROMIUM names, without any talk to its maker.
export function open() {
  return chromium.launch({ executablePath: process.env.PARLEY_TEST_CHROMIUM || '/usr/bin/chromium', timeout: 120_000, args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage',
    `--host-resolver-rules=MAP ${rebinding} 127.0.0.1`] })
}

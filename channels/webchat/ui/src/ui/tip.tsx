import * as Tooltip from '@radix-ui/react-tooltip'
import type { ReactNode } from 'react'

// Tip shows a text on hover and focus. The child must take a ref and props.
export function Tip({ text, children, side }: { text: ReactNode; children: ReactNode; side?: 'top' | 'bottom' | 'left' | 'right' }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger asChild>{children}</Tooltip.Trigger>
      <Tooltip.Portal>
        <Tooltip.Content className="tooltip" side={side} sideOffset={6} collisionPadding={8}>{text}</Tooltip.Content>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}

export const Tips = ({ children }: { children: ReactNode }) => <Tooltip.Provider delayDuration={400}>{children}</Tooltip.Provider>

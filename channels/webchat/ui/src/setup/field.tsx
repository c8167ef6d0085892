import { useId, type InputHTMLAttributes, type ReactNode } from 'react'

type Input = Omit<InputHTMLAttributes<HTMLInputElement>, 'value' | 'onChange'> & { value: string; onChange: (value: string) => void }

const unkept = { autoComplete: 'off', autoCapitalize: 'none', autoCorrect: 'off', spellCheck: false, 'data-1p-ignore': true, 'data-lpignore': 'true' } as const

// TextInput is for what a machine reads: nothing is completed or corrected.
export function TextInput({ onChange, className, ...rest }: Input) {
  return <input className={className ?? 'field'} {...unkept} {...rest} onChange={e => { onChange(e.target.value) }} />
}

// SecretInput is for keys, tokens and codes. What is in it is in no draft, no address and no storage.
export const SecretInput = (props: Input) => <TextInput type="password" {...props} />

// Field is a line of a form: its name, the control, and what helps to fill it. The control is given the id of the help.
export function Field({ label, help, needed, children }: { label: string; help?: ReactNode; needed?: boolean; children: (described: { 'aria-describedby'?: string; required?: boolean }) => ReactNode }) {
  const id = useId()
  return (
    <div className="form-field">
      <label className="label">{label}{children({ 'aria-describedby': help ? id : undefined, required: needed })}</label>
      {help && <p id={id} className="small soft form-help">{help}</p>}
    </div>
  )
}

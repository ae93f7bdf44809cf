package corpus

// The languages of source files, the common ones several times.
var programs = []*grammar{golang, python, golang, python, python, schema, config}

// source is source files in all languages.
func (a *Author) source() voice { return a.files(programs) }

// files is source files, one after another: each begins with its path, and
// goes on in declarations that share its names.
func (a *Author) files(languages []*grammar) voice {
	var f *file
	return func(dst []byte) []byte {
		if f == nil || f.left == 0 {
			f = a.newFile(pick(a.rng, languages))
			dst = append(dst, f.g.style.comment...)
			dst = f.write(dst, "path")
			dst = append(dst, '\n')
			dst = f.write(dst, "head")
		} else {
			f.left--
			f.locals, f.coming = f.locals[:0], f.coming[:0]
			dst = f.write(dst, "decl")
		}
		return append(dst, "\n\n"...)
	}
}

// write writes a rule of the file's language by name.
func (f *file) write(dst []byte, name string) []byte {
	return f.g.write(dst, f, f.g.rules[name], 0, 0)
}

"""The package's stubs list exactly what it offers. Usage: test_stubs.py BUILD"""
import ast
import inspect
import os
import re
import sys
import unittest

import interpreter

# What makes an object usable in a statement: a class that has one of these declares it in its stub.
PROTOCOLS = {"__enter__", "__exit__", "__iter__", "__next__", "__aiter__", "__getitem__", "__setitem__", "__delitem__", "__len__", "__call__",
             "__array__", "__dlpack__", "__dlpack_device__", "__cuda_array_interface__"}


SIGNATURE = re.compile(r"\w+\(.*\) -> |\w+\(\*args")


def names_of(body):
    """name -> its definitions, from a stub's lines."""
    found = {}
    for line in body:
        if isinstance(line, ast.ImportFrom):   # from ._space import Space as Space: that file has its own annotations
            found.update({alias.asname: [line] for alias in line.names if alias.asname == alias.name})
            continue
        name = line.target.id if isinstance(line, ast.AnnAssign) else getattr(line, "name", None)
        if name is None and isinstance(line, ast.Assign):
            name = line.targets[0].id
        if name is not None:
            found.setdefault(name, []).append(line)
    return found


def public(names):
    return {name for name in names if not name.startswith("_")}


def words_of(text):
    """A docstring's words, without the extension's lines of signatures."""
    return " ".join(" ".join(line for line in (text or "").splitlines() if not SIGNATURE.match(line)).split())


def defaults_of(definition):
    """name -> default, of those parameters whose default is a literal."""
    a = definition.args
    pairs = [*zip([p.arg for p in a.posonlyargs + a.args][-len(a.defaults):] if a.defaults else [], a.defaults),
             *zip([p.arg for p in a.kwonlyargs], a.kw_defaults)]
    return {name: ast.literal_eval(value) for name, value in pairs
            if value is not None and not (isinstance(value, ast.Constant) and value.value is ...)}


def parameters_of(definition):
    a = definition.args
    return [p.arg for p in a.posonlyargs + a.args], [p.arg for p in a.kwonlyargs]


class Stubs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(os.path.join(os.path.dirname(carousel.__file__), "__init__.pyi"), encoding="utf-8") as text:
            cls.stubs = names_of(ast.parse(text.read()).body)
        cls.classes = {name: lines[0] for name, lines in cls.stubs.items() if isinstance(lines[0], ast.ClassDef)}

    def test_the_module_s_names_are_those_of_the_stubs(self):
        self.assertEqual(public(self.stubs), set(carousel.__all__))
        modules = {name for name, value in vars(carousel).items() if inspect.ismodule(value)}
        self.assertEqual(public(vars(carousel)) - modules, set(carousel.__all__))

    def test_each_class_has_the_members_of_its_stub(self):
        self.assertGreater(len(self.classes), 15)
        for name, stub in self.classes.items():
            with self.subTest(name):
                there, stubs = getattr(carousel, name), names_of(stub.body)
                own = {member for member in vars(there) if not isinstance(vars(there)[member], type)}
                # What only an object has (`name: str`) is not an attribute of the class; what the class has must be listed.
                of_objects = {member for member, lines in stubs.items() if isinstance(lines[0], ast.AnnAssign)}
                if issubclass(there, tuple):   # a named tuple has the methods of a tuple, too
                    self.assertEqual(list(there._fields), sorted(of_objects, key=there._fields.index))
                    continue
                self.assertEqual(public(own) - of_objects, public(stubs) - of_objects)
                inherited = {member for base in there.__mro__[1:-1] for member in vars(base)}
                self.assertEqual({m for m in stubs if m in PROTOCOLS} - own - inherited, set())
                self.assertEqual({m for m in own if m in PROTOCOLS} - set(stubs), set())

    def test_each_property_and_each_base_is_one_there(self):
        for name, stub in self.classes.items():
            there = getattr(carousel, name)
            for base in (b.id for b in stub.bases if isinstance(b, ast.Name) and hasattr(carousel, b.id)):
                self.assertTrue(issubclass(there, getattr(carousel, base)), name)
            for member, lines in names_of(stub.body).items():
                if not isinstance(lines[0], ast.FunctionDef) or member.startswith("__"):
                    continue
                value = inspect.getattr_static(there, member)
                stubs = any(isinstance(d, ast.Name) and d.id == "property" for d in lines[0].decorator_list)
                self.assertEqual(isinstance(value, property), stubs, f"{name}.{member}")
                if stubs:
                    self.assertEqual(value.fset is not None, len(lines) > 1, f"{name}.{member} can be set")

    def test_parameters_have_their_names(self):
        compared = 0
        for owner, body in [(None, self.stubs), *((getattr(carousel, n), names_of(c.body)) for n, c in self.classes.items())]:
            for name, lines in body.items():
                if not isinstance(lines[0], ast.FunctionDef) or name.startswith("__") or lines[0].decorator_list:
                    continue
                there = getattr(owner or carousel, name)
                positional, keywords = parameters_of(lines[0])
                if inspect.isfunction(there):
                    of = list(inspect.signature(there).parameters.values())
                    self.assertEqual([p.name for p in of if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)], positional, name)
                    if not any(p.kind == p.VAR_KEYWORD for p in of):   # **kwargs: the parameters of the called function
                        self.assertEqual([p.name for p in of if p.kind == p.KEYWORD_ONLY], keywords, name)
                        self.assertEqual({p.name: p.default for p in of if p.default is not p.empty}, defaults_of(lines[0]), name)
                else:   # of the extension: its first line of text lists the parameters
                    for parameter in [p for p in positional if p != "self"] + keywords:
                        self.assertIn(f"{parameter}: ", there.__doc__.splitlines()[0], f"{owner}.{name}")
                compared += 1
        self.assertGreater(compared, 25)

    def test_the_stubs_have_the_docstrings_of_the_module(self):
        compared = 0
        for name, lines in self.stubs.items():
            for owner, member, stub in [(carousel, name, lines[0]), *((getattr(carousel, name), member, of[0]) for member, of in
                                        (names_of(lines[0].body) if isinstance(lines[0], ast.ClassDef) else {}).items())]:
                if member.startswith("_") or not isinstance(stub, (ast.ClassDef, ast.FunctionDef)):
                    continue
                self.assertEqual(words_of(ast.get_docstring(stub)), words_of(inspect.getattr_static(owner, member).__doc__), f"{name}.{member}")
                compared += 1
        self.assertGreater(compared, 100)

    def test_whatever_is_offered_has_a_docstring(self):
        compared = 0
        for owner, names in [(carousel, carousel.__all__), *((getattr(carousel, n), public(vars(getattr(carousel, n)))) for n in self.classes)]:
            for name in names:
                text = (inspect.getattr_static(owner, name).__doc__ or "").strip().splitlines()
                # The extension's text of a function begins with a line of its signature.
                described = [line for line in text if line and not line.startswith(f"{name}(")]
                self.assertTrue(described, f"{owner.__name__}.{name}")
                compared += 1
        self.assertGreater(compared, 80)


if __name__ == "__main__":
    interpreter.use(sys.argv[1])
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)

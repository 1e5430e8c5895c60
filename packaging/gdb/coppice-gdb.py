# Makes gdb's output readable for programs that use coppice: `source coppice-gdb.py` by hand or in
# ~/.gdbinit.
#
#   bt                 without the library's own frames, and with short names of the rest
#   bt -no-filters     all frames, as gdb shows them
#   coppice tasks      the tasks that wait for one another, from the innermost task of the selected
#                      thread outwards, also where no frame on the stack says so
#   coppice tasks HANDLE   the same, from a suspended coroutine; its address, as handle.address()
#
# Works with clang and g++ at any level of optimization. It cannot show what is optimized out.
# docs/debugging.md has an example.
import os
import re

import gdb
from gdb.FrameDecorator import FrameDecorator

NAME_MAX = 100  # columns of a function's name

# A symbol of the library that gdb did not demangle: it cannot demangle constraints.
MANGLED = re.compile(r'^_ZZ*T?h?n?\d*_?N[KVrO]*(?:7coppice|St.*7coppice)')
HEADER = re.compile(r'/coppice/(?:[a-z_]+/)+[a-z_]+\.hpp$')
# The suffixes that compilers append to the function's name for the body of a coroutine.
CLONE = re.compile(r'\s*\[clone [^\]]*\]|\.(?:resume|destroy|cleanup|actor|part\.\d+|cold)\b')
ACTOR = re.compile(r'\((?:[\w:]+::)?_Z\w+\.(?:Frame|frame)\s*\*\)')
GLUE = re.compile(r'__await_(?:suspend|ready|resume)_wrapper__|^std::(?:__n4861::)?coroutine_handle<')


def without_arguments(name, depth_kept):
    """Returns NAME with <...> for template arguments nested deeper than `depth_kept`."""
    out, depth, i = [], 0, 0
    while i < len(name):
        c = name[i]
        if name.startswith('operator', i):
            m = re.match(r'operator(?:<=>|<<=?|>>=?|<=|>=|->\*?|<|>)?', name[i:])
            if depth <= depth_kept:
                out.append(m.group())
            i += m.end()
            continue
        if c == '<':
            depth += 1
            if depth <= depth_kept:
                out.append(c)
            elif depth == depth_kept + 1:
                out.append('<...>')
        elif c == '>' and depth > 0 and name[i - 1] != '-':
            if depth <= depth_kept:
                out.append(c)
            depth -= 1
        elif depth <= depth_kept:
            out.append(c)
        i += 1
    return ''.join(out)


def short_name(name):
    """Returns a function's name as an engineer would say it."""
    if name is None:
        return None
    if name.startswith('_Z'):
        words, i = [], re.match(r'_Z+\d*N?[KVrO]*', name).end()
        while i < len(name):
            m = re.match(r'(\d+)', name[i:])
            if m is None:
                break
            n = int(m.group(1))
            i += m.end()
            words.append(name[i:i + n])
            i += n
        return '::'.join(words) + '<...>' if words else name[:NAME_MAX]
    name = ACTOR.sub('', CLONE.sub('', name)).replace('std::__n4861::', 'std::')
    for depth in (2, 1, 0):
        short = without_arguments(name, depth)
        if len(short) <= NAME_MAX:
            return short
    return short[:NAME_MAX - 3] + '...'


def without_parameters(name):
    """Returns NAME without its parameter list: gdb shows the parameters with their values."""
    name = re.sub(r'\)(?: const| volatile|&| noexcept)+$', ')', name)
    if not name.endswith(')') or name.endswith('operator()'):
        return name
    depth = 0
    for i in range(len(name) - 1, 0, -1):
        depth += (name[i] == ')') - (name[i] == '(')
        if depth == 0:
            return name[:i]
    return name


def file_of(frame):
    try:
        symtab = frame.find_sal().symtab
        return symtab.filename if symtab is not None else ''
    except gdb.error:
        return ''


def is_library(frame):
    """Returns True for frames of coppice's own code, and of glue between coroutines."""
    name = frame.name()
    if name is None:
        return False
    if name.startswith('coppice::') or MANGLED.match(name) or GLUE.search(name):
        return True
    return HEADER.search(file_of(frame)) is not None


def is_std(frame):
    name = frame.name()
    return name is not None and name.startswith(('std::', '__gnu_cxx::', '_ZNSt', '_ZSt'))


class ShortFrame(FrameDecorator):
    def function(self):
        name = super().function()
        if name is None:
            return '??'
        return without_parameters(short_name(name)) if isinstance(name, str) else name

    def filename(self):
        name = super().filename()
        if name is not None and len(name) > 60:
            return os.path.join('...', *name.split(os.sep)[-2:])
        return name

    def frame_args(self):
        try:
            return super().frame_args() if not is_library(self.inferior_frame()) else None
        except gdb.error:
            return None


class CoppiceFrames:
    """Leaves out the library's frames, except the innermost: the thread is there."""

    def __init__(self):
        self.name = 'coppice'
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        waiting = []  # std's frames: left out if the library called them
        for number, decorated in enumerate(frames):
            frame = decorated.inferior_frame()
            if number != 0 and is_library(frame):
                waiting = []
                continue
            if number != 0 and is_std(frame):
                waiting.append(decorated)
                continue
            yield from map(ShortFrame, waiting)
            waiting = []
            yield ShortFrame(decorated)
        yield from map(ShortFrame, waiting)


# ---- Tasks that wait for one another ----------------------------------------------------------
def promise_of_frame(frame):
    """Returns the promise of the coroutine that a stack frame runs, or None."""
    try:
        block = frame.block()
    except RuntimeError:
        return None
    while block is not None:
        for symbol in block:
            if symbol.name in ('__promise', '_Coro_promise'):
                return symbol.value(frame)
            if symbol.name == 'frame_ptr':  # g++'s
                value = symbol.value(frame)
                if any(f.name == '_Coro_promise' for f in value.type.target().fields()):
                    return value.dereference()['_Coro_promise']
        if block.function is not None:
            break
        block = block.superblock
    return None


def promise_of_handle(address):
    """Returns the promise of a suspended coroutine, found through its resume function."""
    pointer = gdb.lookup_type('void').pointer()
    resume = int(gdb.Value(address).cast(pointer.pointer())[0])
    if resume == 0:
        return None
    block = gdb.block_for_pc(resume)
    while block is not None:
        for symbol in block:
            if symbol.name == '__promise':
                return at(address + promise_offset(symbol.type), symbol.type)
            if symbol.name == 'frame_ptr':
                frame = gdb.Value(address).cast(symbol.type).dereference()
                return frame['_Coro_promise']
        if block.function is not None:
            break
        block = block.superblock
    return None


def at(address, kind):
    return gdb.Value(address).cast(kind.pointer()).dereference()


def promise_offset(kind):
    """Returns the promise's place in a frame: behind the two addresses that begin each frame."""
    size = 2 * gdb.lookup_type('void').pointer().sizeof
    align = max(kind.strip_typedefs().alignof, 1)
    return (size + align - 1) // align * align


def coroutine_of(promise):
    return int(promise.address) - promise_offset(promise.type)


def function_of(coroutine):
    """Returns (name, file:line) of a coroutine, found through the addresses in its frame."""
    pointer = gdb.lookup_type('void').pointer()
    words = gdb.Value(coroutine).cast(pointer.pointer())
    for i in (0, 1):
        code = int(words[i])
        if code == 0:
            continue
        block = gdb.block_for_pc(code)
        while block is not None and block.function is None:
            block = block.superblock
        name = block.function.name if block is not None else None
        if name is None:
            m = re.search(r'<(.*?)(?:\+\d+)?>', str(gdb.Value(code).cast(pointer)))
            name = m.group(1) if m else hex(code)
        sal = gdb.find_pc_line(code)
        where = ''
        if sal.symtab is not None:
            where = '%s:%d' % (os.path.basename(sal.symtab.filename), sal.line)
        return without_parameters(short_name(name)), where
    return '?', ''


def chain_of(promise):
    """Returns the task_chain of a promise, or None if the coroutine is not a task."""
    pending = [promise]
    while pending:
        value = pending.pop(0)
        if re.search(r'(?:^|::)task_chain$', str(value.type.strip_typedefs().unqualified())):
            return value
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
            pending += [value[f] for f in value.type.strip_typedefs().fields() if f.is_base_class]
    return None


def field(value, name):
    """Returns a field of the value's own class or of one of its bases."""
    for f in value.type.strip_typedefs().fields():
        if f.name == name and not f.is_base_class:
            return value[f]
    for f in value.type.strip_typedefs().fields():
        if f.is_base_class:
            found = field(value[f], name)
            if found is not None:
                return found
    return None


def waiting_for(chain):
    """Returns (waiting coroutine, its task_chain or None, None), or (None, None, what waits)."""
    waiter = chain['waiter_']
    if int(waiter) == 0:
        return None, None, 'nobody'
    # Asked by its table of functions: gdb warns of classes whose names it cannot look up.
    table = gdb.execute('info symbol %#x' % int(waiter.cast(gdb.lookup_type('void').pointer()
                                                            .pointer())[0]), to_string=True)
    m = re.match(r'vtable for (.*?) (?:\+ \d+ )?in section', table)
    kind = m.group(1) if m else 'an object without a name'
    if 'waiter_for_task' not in kind.split('<')[0]:
        return None, None, short_name(kind)
    whole = waiter.dereference().cast(waiter.dynamic_type.target())
    parent = field(whole, 'parent_')
    if parent is None:
        return None, None, short_name(kind)
    handle = field(parent, 'self_')
    coroutine = int(field(handle, '_M_fr_ptr'))
    direct = field(parent, 'chain_')
    if direct is not None:
        return coroutine, direct.dereference() if int(direct) else None, None
    promise = handle.type.strip_typedefs().template_argument(0)
    return coroutine, chain_of(at(coroutine + promise_offset(promise), promise)), None


class CoppiceCommand(gdb.Command):
    """Commands for programs that use coppice."""

    def __init__(self):
        super().__init__('coppice', gdb.COMMAND_STACK, gdb.COMPLETE_NONE, True)


class CoppiceTasks(gdb.Command):
    """coppice tasks [HANDLE]: which task waits for which, from the innermost outwards."""

    TASKS_MAX = 1000

    def __init__(self):
        super().__init__('coppice tasks', gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        if argument:
            coroutine = int(gdb.parse_and_eval(argument))
            promise = promise_of_handle(coroutine)
        else:
            frame, promise = gdb.selected_frame(), None
            while frame is not None and promise is None:
                promise = promise_of_frame(frame)
                frame = frame.older()
            if promise is None:
                raise gdb.GdbError('no coroutine on the stack of this thread')
            coroutine = coroutine_of(promise)
        chain = chain_of(promise) if promise is not None else None
        for number in range(self.TASKS_MAX):
            name, where = function_of(coroutine)
            gdb.write('#%-2d %s%s  %#x\n' % (number, name, ' at ' + where if where else '',
                                             coroutine))
            if chain is None:
                return
            coroutine, chain, other = waiting_for(chain)
            if coroutine is None:
                gdb.write('    awaited by %s\n' % other)
                return


CoppiceFrames()
CoppiceCommand()
CoppiceTasks()

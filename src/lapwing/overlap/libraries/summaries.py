"""Library summaries: the effects of functions without source, C's library and Fortran's intrinsics.

A function that is not listed may do anything. Some are therefore omitted on purpose: ``system``, ``longjmp``, ``signal``,
``fesetround``, whatever starts threads, and whatever reads ``errno``. The latter lets the mathematical functions, which may set
it, count as pure: code that reads ``errno`` is a barrier to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lapwing.overlap.ir.expressions import Expression, Name, Text


@dataclass(frozen=True)
class LibrarySummary:
    """The effects of a call. Arguments are counted from 0. An argument's own value is always read (in Fortran that is the
    variable's value, unless the function is an ``inquiry`` or only writes it), so ``reads`` holds C's pointees only.

    ``state``: a hidden state that is read and written: "heap", "random", "clock", "environment", "locale", "threads" (OpenMP's
    settings), "signgam". Calls with the same state keep their order. "synchronisation" is that of files: other ranks see what
    was written once it is closed or flushed, so these calls and messages keep their order. ``stream``: the argument that is the
    C stream it works on; standard streams are exempt from that. ``io``: it reads or prints, which keeps its order, too.
    """

    name: str
    pure: bool = False  # no effects; the result depends on the arguments' values only
    reads: tuple[int, ...] = ()  # arguments whose pointees are read
    writes: tuple[int, ...] = ()  # arguments whose pointees (Fortran: the variables themselves) are written
    io: bool = False
    ends: bool = False  # does not return, or (assert) may not
    state: str | None = None
    stream: int | None = None
    allocates: bool = False
    frees: bool = False
    inquiry: bool = False  # looks at shape, status or type of its arguments, never at their contents
    of_declaration: bool = False  # an inquiry about what no statement changes: a type, or an argument's presence
    reads_from: int | None = None  # the pointees of this argument and all after it are read
    writes_from: int | None = None
    returns: int | None = None  # the argument whose pointer it returns, or one into the same object
    chooses: tuple[int, ...] = ()  # C++: it returns a reference to one of these arguments
    stores: tuple[tuple[int, int], ...] = ()  # (to, from): a pointer into from's pointee is stored in to's pointee
    copies: tuple[tuple[int, int], ...] = ()  # (to, from): contents are copied, pointers among them
    lends: bool = False  # returns a pointer into memory of the library's own, the same at every call
    fills: int | None = None  # the argument whose pointee receives a pointer to newly allocated memory
    calls: tuple[int, ...] = ()  # function arguments that are called
    parameters: tuple[str, ...] = ()  # Fortran's keywords

    def arguments_read(self, arguments: Sequence[Expression]) -> tuple[int, ...]:
        """The arguments of a call whose pointees are read, those of a variable argument list included."""
        return _with_rest(self.reads, self.reads_from, len(arguments))

    def arguments_written(self, arguments: Sequence[Expression]) -> tuple[int, ...]:
        """The arguments of a call whose pointees are written; printf's ``%n`` is seen where the format is a literal."""
        start = self.writes_from
        if self.io or self.reads_from is not None:
            texts = [position for position, argument in enumerate(arguments) if _counts(argument)]
            start = texts[0] + 1 if texts and start is None else start
        return _with_rest(self.writes, start, len(arguments))

    def reads_nothing_of(self, argument: Expression) -> bool:
        """Fortran: whether it is an inquiry whose answer no statement can change."""
        if not self.inquiry or not isinstance(argument, Name):
            return False
        return self.of_declaration or not (argument.symbol.allocatable or argument.symbol.pointer)

    def position(self, keyword: str) -> int | None:
        """The argument a Fortran keyword stands for."""
        return self.parameters.index(keyword) if keyword in self.parameters else None


def lookup(name: str, language: str) -> LibrarySummary | None:
    """The summary of ``name`` in a source of ``language`` ("fortran" or "c", C++ included); None: it may do anything."""
    if language == "fortran":
        return _FORTRAN.get(name.lower())
    return _C.get(name) or _C.get(name.removeprefix("__builtin_")) or _C.get(name.removeprefix("std::"))


def _with_rest(arguments: tuple[int, ...], start: int | None, count: int) -> tuple[int, ...]:
    rest = range(start, count) if start is not None else range(0)
    return tuple(sorted({position for position in arguments if position < count} | set(rest)))


def _counts(argument: Expression) -> bool:
    return isinstance(argument, Text) and "%n" in argument.text.replace("%%", "")


def _table(*groups: Iterable[LibrarySummary]) -> dict[str, LibrarySummary]:
    return {known.name: known for group in groups for known in group}


def _each(names: str, like: LibrarySummary | None = None) -> list[LibrarySummary]:
    """One entry a name, all alike; pure without ``like``."""
    pattern = like or LibrarySummary("", pure=True)
    return [replace(pattern, name=name) for name in names.split()]


# ---- C ----------------------------------------------------------------------------------------------------------------

_REAL_FUNCTIONS = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim floor fma fmax
    fmin fmod hypot ilogb ldexp llrint llround log log10 log1p log2 logb lrint lround nearbyint nextafter pow remainder
    rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc j0 j1 jn y0 y1 yn
"""
_COMPLEX_FUNCTIONS = """
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal csin csinh csqrt ctan ctanh
"""
_C_PURE = """
    abs labs llabs imaxabs div ldiv lldiv isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper
    isxdigit tolower toupper isnan isinf isfinite isnormal signbit isless islessequal isgreater isgreaterequal isunordered
    fpclassify htonl htons ntohl ntohs ffs difftime std::abs
    __builtin_popcount __builtin_popcountl __builtin_popcountll __builtin_clz __builtin_clzl __builtin_clzll __builtin_ctz
    __builtin_ctzl __builtin_ctzll __builtin_expect __builtin_unreachable
"""

_OPENMP = """
    omp_get_thread_num omp_get_num_threads omp_get_max_threads omp_get_num_procs omp_in_parallel omp_get_level
    omp_set_num_threads omp_set_dynamic omp_set_nested
"""


def _c_functions() -> dict[str, LibrarySummary]:
    return _table(
        _each(_precisions(_REAL_FUNCTIONS + _COMPLEX_FUNCTIONS)),
        _each(_precisions("frexp modf"), LibrarySummary("", writes=(1,))),
        _each(_precisions("remquo"), LibrarySummary("", writes=(2,))),
        _each(_precisions("sincos"), LibrarySummary("", writes=(1, 2))),
        _each(_precisions("lgamma"), LibrarySummary("", state="signgam")),
        _each(_C_PURE),
        _each("std::max std::min", LibrarySummary("", pure=True, chooses=(0, 1))),
        _c_memory(),
        _c_strings(),
        _c_input_output(),
        _c_rest(),
    )


def _precisions(names: str) -> str:
    return " ".join(f"{name}{suffix}" for name in names.split() for suffix in ("", "f", "l"))


def _c_memory() -> list[LibrarySummary]:
    heap = LibrarySummary("", state="heap", allocates=True)
    return [
        *_each("malloc calloc valloc pvalloc memalign aligned_alloc alloca", heap),
        *_each("strdup strndup", replace(heap, reads=(0,))),
        *_each("realloc reallocarray", replace(heap, reads=(0,), writes=(0,), frees=True, returns=0)),
        *_each("free cfree", LibrarySummary("", state="heap", frees=True, writes=(0,))),
        LibrarySummary("posix_memalign", state="heap", allocates=True, writes=(0,), fills=0),
        *_each("memcpy memmove", LibrarySummary("", reads=(1,), writes=(0,), returns=0, copies=((0, 1),))),
        LibrarySummary("mempcpy", reads=(1,), writes=(0,), returns=0, copies=((0, 1),)),
        LibrarySummary("bcopy", reads=(0,), writes=(1,), copies=((1, 0),)),
        *_each("memset", LibrarySummary("", writes=(0,), returns=0)),
        *_each("bzero explicit_bzero", LibrarySummary("", writes=(0,))),
        *_each("memcmp bcmp", LibrarySummary("", reads=(0, 1))),
        *_each("memchr memrchr rawmemchr", LibrarySummary("", reads=(0,), returns=0)),
        LibrarySummary("memmem", reads=(0, 2), returns=0),
        LibrarySummary("std::swap", reads=(0, 1), writes=(0, 1), copies=((0, 1), (1, 0))),
    ]


def _c_strings() -> list[LibrarySummary]:
    return [
        *_each("strlen strnlen", LibrarySummary("", reads=(0,))),
        *_each("strcmp strncmp strcasecmp strncasecmp strspn strcspn", LibrarySummary("", reads=(0, 1))),
        *_each("strcoll", LibrarySummary("", reads=(0, 1), state="locale")),
        *_each("strcpy strncpy stpcpy stpncpy", LibrarySummary("", reads=(1,), writes=(0,), returns=0)),
        *_each("strcat strncat", LibrarySummary("", reads=(0, 1), writes=(0,), returns=0)),
        *_each("strchr strrchr strchrnul index rindex", LibrarySummary("", reads=(0,), returns=0)),
        *_each("strstr strcasestr strpbrk", LibrarySummary("", reads=(0, 1), returns=0)),
        # strtok is omitted: it keeps a pointer to a string, which a later call with NULL reads and writes.
        LibrarySummary("strtok_r", reads=(0, 1, 2), writes=(0, 2), returns=0, stores=((2, 0),)),
        *_each("atoi atol atoll atof", LibrarySummary("", reads=(0,))),
        *_each(
            "strtol strtoll strtoul strtoull strtod strtof strtold strtoimax strtoumax",
            LibrarySummary("", reads=(0,), writes=(1,), stores=((1, 0),)),
        ),
        LibrarySummary("strerror", state="locale", lends=True),
        LibrarySummary("setlocale", reads=(1,), state="locale", lends=True),
    ]


def _c_input_output() -> list[LibrarySummary]:
    stream = LibrarySummary("", io=True)
    file = LibrarySummary("", io=True, state="synchronisation")
    return [
        *_each("printf vprintf", replace(stream, reads_from=0)),
        *_each("fprintf vfprintf", replace(stream, reads_from=0, writes=(0,))),
        replace(file, name="dprintf", reads_from=1),
        *_each("sprintf vsprintf", LibrarySummary("", reads_from=1, writes=(0,))),
        *_each("snprintf vsnprintf", LibrarySummary("", reads_from=2, writes=(0,))),
        LibrarySummary("scanf", io=True, reads=(0,), writes_from=1),
        replace(file, name="fscanf", reads=(0, 1), writes=(0,), writes_from=2, stream=0),
        LibrarySummary("sscanf", reads=(0, 1), writes_from=2),
        *_each("puts perror", replace(stream, reads=(0,))),
        *_each("putchar getchar", stream),
        *_each("fputs", replace(stream, reads=(0, 1), writes=(1,))),
        *_each("fputc putc ungetc", replace(stream, reads=(1,), writes=(1,))),
        *_each("fgetc getc fflush rewind fseek fseeko", replace(file, reads=(0,), writes=(0,), stream=0)),
        *_each("feof ferror clearerr ftell ftello fileno", replace(stream, reads=(0,), writes=(0,))),
        replace(file, name="fgets", reads=(2,), writes=(0, 2), returns=0, stream=2),
        replace(file, name="fread", reads=(3,), writes=(0, 3), stream=3),
        LibrarySummary("fwrite", io=True, reads=(0, 3), writes=(3,)),
        *_each("fclose pclose", replace(file, reads=(0,), writes=(0,))),
        *_each("fopen freopen", replace(file, reads=(0, 1), lends=True)),
        *_each("setbuf setvbuf", replace(stream, reads=(0,), writes=(0, 1), stores=((0, 1),))),
        *_each("open creat remove unlink mkdir rmdir chdir access", replace(file, reads=(0,))),
        *_each("rename", replace(file, reads=(0, 1))),
        *_each("close lseek fsync", file),
        *_each("write", replace(file, reads=(1,))),
        *_each("read", replace(file, writes=(1,))),
        *_each("stat lstat", replace(file, reads=(0,), writes=(1,))),
        *_each("fstat", replace(file, writes=(1,))),
        *_each("getcwd", replace(stream, writes=(0,), returns=0)),
    ]


def _c_rest() -> list[LibrarySummary]:
    clock = LibrarySummary("", state="clock")
    random = LibrarySummary("", state="random")
    return [
        *_each("exit _exit _Exit quick_exit", LibrarySummary("", ends=True, io=True)),
        *_each("abort assert __assert_fail __assert", LibrarySummary("", ends=True, io=True, reads_from=0)),
        *_each("time", replace(clock, writes=(0,))),
        *_each("clock MPI_Wtime MPI_Wtick PMPI_Wtime omp_get_wtime omp_get_wtick sleep usleep", clock),
        *_each("gettimeofday", replace(clock, writes=(0, 1))),
        *_each("clock_gettime clock_getres timespec_get getrusage", replace(clock, writes=(0, 1))),
        *_each("nanosleep", replace(clock, reads=(0,), writes=(1,))),
        *_each("times ftime", replace(clock, writes=(0,))),
        *_each("localtime gmtime ctime asctime mktime", replace(clock, reads=(0,), lends=True)),
        *_each("localtime_r gmtime_r", replace(clock, reads=(0,), writes=(1,), returns=1)),
        *_each("strftime", replace(clock, reads=(2, 3), writes=(0,))),
        *_each("rand random drand48 lrand48 mrand48 srand srandom srand48", random),
        *_each("rand_r", LibrarySummary("", reads=(0,), writes=(0,))),
        *_each("erand48 nrand48 jrand48", replace(random, reads=(0,), writes=(0,))),
        LibrarySummary("getenv", reads=(0,), state="environment", lends=True),
        *_each("getpid getppid getuid getgid sysconf gethostid get_nprocs", LibrarySummary("", state="environment")),
        LibrarySummary("gethostname", writes=(0,), state="environment"),
        *_each(_OPENMP, LibrarySummary("", state="threads")),
        LibrarySummary("qsort", reads=(0,), writes=(0,), calls=(3,)),
        LibrarySummary("bsearch", reads=(0, 1), returns=1, calls=(4,)),
    ]


# ---- Fortran ----------------------------------------------------------------------------------------------------------

_FORTRAN_PURE = """
    abs achar acos acosh adjustl adjustr aimag aint all anint any asin asinh atan atan2 atan2d atand atanh bessel_j0 bessel_j1
    bessel_jn bessel_y0 bessel_y1 bessel_yn bge bgt ble blt btest ceiling char cmplx conjg cos cosd cosh count cshift dble dim
    dot_product dprod dshiftl dshiftr eoshift erf erfc erfc_scaled exp exponent findloc floor fraction gamma hypot iachar iall
    iand iany ibclr ibits ibset ichar ieor index int ior iparity ishft ishftc leadz len_trim lge lgt lle llt log log10
    log_gamma logical maskl maskr matmul max maxloc maxval merge merge_bits min minloc minval mod modulo nearest nint norm2 not
    out_of_range pack parity popcnt poppar product real reduce repeat reshape rrspacing scale scan selected_char_kind
    selected_int_kind selected_real_kind set_exponent shifta shiftl shiftr sign sin sind sinh spacing spread sqrt sum tan tand
    tanh trailz transfer transpose trim unpack verify
    iabs dabs cabs cdabs zabs iqabs amax0 amax1 max0 max1 dmax1 amin0 amin1 min0 min1 dmin1 amod dmod sngl float dfloat dreal
    dimag dcmplx dconjg ifix idint int1 int2 int4 int8 isign dsign idim ddim dint dnint idnint alog alog10 dlog dlog10 clog
    cdlog zlog dexp cexp cdexp zexp dsqrt csqrt cdsqrt zsqrt dsin csin zsin dcos ccos zcos dtan dasin dacos datan datan2 dsinh
    dcosh dtanh derf derfc dgamma and or xor lshift rshift isnan ieee_is_nan ieee_is_finite ieee_is_normal ieee_is_negative
    ieee_copy_sign ieee_value sizeof
"""
_FORTRAN_INQUIRIES = """
    allocated associated extends_type_of is_contiguous lbound len same_type_as shape size storage_size ubound c_sizeof c_funloc
"""
_ABOUT_DECLARATIONS = """
    bit_size digits epsilon huge kind maxexponent minexponent new_line null precision present radix range rank tiny
    compiler_options compiler_version
"""


def _fortran_functions() -> dict[str, LibrarySummary]:
    clock = LibrarySummary("", state="clock")
    environment = LibrarySummary("", state="environment")
    return _table(
        _each(_FORTRAN_PURE),
        _each(_FORTRAN_INQUIRIES, LibrarySummary("", pure=True, inquiry=True)),
        _each(_ABOUT_DECLARATIONS, LibrarySummary("", pure=True, inquiry=True, of_declaration=True)),
        _each("is_iostat_end is_iostat_eor c_associated", LibrarySummary("", pure=True)),
        [
            LibrarySummary("c_loc", pure=True, inquiry=True, returns=0),
            LibrarySummary("loc", pure=True, inquiry=True, returns=0),
            LibrarySummary("c_f_pointer", writes=(1,), parameters=("cptr", "fptr", "shape", "lower")),
            LibrarySummary(
                "move_alloc", writes=(0, 1, 2, 3), state="heap", parameters=("from", "to", "stat", "errmsg")
            ),
            LibrarySummary("mvbits", writes=(3,), parameters=("from", "frompos", "len", "to", "topos")),
            LibrarySummary("random_number", writes=(0,), state="random", parameters=("harvest",)),
            LibrarySummary("random_seed", writes=(0, 2), state="random", parameters=("size", "put", "get")),
            LibrarySummary("random_init", state="random", parameters=("repeatable", "image_distinct")),
            *_each("rand irand srand", LibrarySummary("", writes=(0,), state="random")),
            LibrarySummary(
                "system_clock", writes=(0, 1, 2), state="clock", parameters=("count", "count_rate", "count_max")
            ),
            LibrarySummary("cpu_time", writes=(0,), state="clock", parameters=("time",)),
            LibrarySummary(
                "date_and_time", writes=(0, 1, 2, 3), state="clock", parameters=("date", "time", "zone", "values")
            ),
            *_each(
                "mpi_wtime mpi_wtick pmpi_wtime omp_get_wtime omp_get_wtick time time8 mclock mclock8 secnds", clock
            ),
            *_each("second", replace(clock, writes=(0,))),
            *_each("sleep", clock),
            *_each("etime dtime", replace(clock, writes=(0, 1))),
            *_each("fdate idate itime", replace(clock, writes=(0,))),
            *_each("iargc command_argument_count getpid", environment),
            LibrarySummary(
                "get_command_argument",
                writes=(1, 2, 3, 4),
                state="environment",
                parameters=("number", "value", "length", "status", "errmsg"),
            ),
            LibrarySummary(
                "get_command",
                writes=(0, 1, 2, 3),
                state="environment",
                parameters=("command", "length", "status", "errmsg"),
            ),
            LibrarySummary(
                "get_environment_variable",
                writes=(1, 2, 3, 5),
                state="environment",
                parameters=("name", "value", "length", "status", "trim_name", "errmsg"),
            ),
            *_each("getarg getenv", replace(environment, writes=(1,))),
            *_each("hostnm getcwd", replace(environment, writes=(0, 1))),
            *_each(_OPENMP, LibrarySummary("", state="threads")),
            LibrarySummary("flush", io=True, state="synchronisation", parameters=("unit",)),
            *_each("exit abort", LibrarySummary("", ends=True, io=True)),
        ],
    )


_C = _c_functions()
_FORTRAN = _fortran_functions()

"""What a changed file in C or C++ needs: slots, and the procedures that work on them."""

from __future__ import annotations

from string import Template

from lapwing.overlap.needs import Needs, drain_name
from lapwing.overlap.phases import SHORT_MESSAGE, Part


def c_support(needs: Needs, cpp: bool) -> str:
    """Text for C or C++, where MPI is declared."""
    parts = [_head(needs)] if needs.slots else []
    if needs.progresses:
        parts.append(_PROGRESS.substitute(stem=needs.stem))
    if needs.is_typed:
        parts.append(_BYTES)
    if needs.copying:
        parts.append(_ROOM)
    if Part.SEND in needs.copying:
        parts.append(_SEND)
    if (Part.SEND, True) in needs.plain:
        parts.append(_SEND_SHORT)
    if needs.holds:
        parts.append(_HOLD)
    if Part.POST in needs.copying:
        parts.append(_POST.substitute(held=_HELD if (Part.POST, True) in needs.plain else ""))
    if (Part.POST, True) in needs.plain:
        parts.append(_POST_SHORT)
    if needs.direct:
        parts.append(_RECEIVE)
    if needs.drains:
        linkage = 'extern "C" ' if cpp else ""
        parts.append(_DRAIN.substitute(linkage=linkage, name=drain_name(needs.stem), slots=needs.slots))
    # A declaration in a block would be one of the namespace around, and of C++'s linkage: the drain may be a C file's.
    others = sorted(needs.drained - ({drain_name(needs.stem)} if needs.drains else set()))
    if others:
        parts.append("\n" + "".join(f'extern "C" void {name}(void);\n' for name in others))
    return "".join(parts)


def _head(needs: Needs) -> str:
    """The slots, which hold what is needed in this file."""
    lines = [
        "MPI_Request request;",
        *(["char *copy;", "size_t bytes;"] if needs.copying else []),
        *(["MPI_Datatype type;", "int type_size;"] if needs.is_typed else []),
        *(["int pending;"] if needs.drains else []),
        *(["int held, count, source, tag;", "MPI_Comm comm;"] if needs.holds else []),
    ]
    fields = "".join(f"    {line}\n" for line in lines)
    includes = "#include <stdlib.h>\n#include <string.h>\n" if needs.copying or needs.memcpy else ""
    return _HEAD.substitute(slots=needs.slots, fields=fields, includes=includes)


_HEAD = Template(
    """
/* lapwing: what overlapped communication needs. A slot is one call's request and, if it needs one, its copy of the data. */
${includes}struct lapwing_slot {
$fields};
static struct lapwing_slot lapwing_slots[$slots];
"""
)
# MPICH does nothing for other messages when it looks on MPI_COMM_SELF, or when it finds one: so on MPI_COMM_WORLD, and with a tag
# that is hardly used, the largest that every MPI allows.
_PROGRESS = Template(
    """
/* lapwing: lets MPI go on with what is under way, about every 30 microseconds. It need not look at the clock each time. */
static void lapwing_${stem}_progress(void)
{
    static double last;
    static int left, skipped;
    double now, passed;
    int flag;
    if (left-- > 0) return;
    now = MPI_Wtime();
    passed = now - last;
    skipped = passed > 60e-6 ? 0 : passed < 30e-6 && skipped < 15 ? 2 * skipped + 1 : skipped;
    left = skipped;
    if (passed < 30e-6) return;
    last = now;
    MPI_Iprobe(MPI_ANY_SOURCE, 32767, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}
"""
)
# The types are MPI's own (motions/blocking_calls.py): one handle means one size for ever.
_BYTES = """
static size_t lapwing_bytes(struct lapwing_slot *slot, int count, MPI_Datatype type)
{
    if (slot->type_size == 0 || slot->type != type) MPI_Type_size(type, &slot->type_size);
    slot->type = type;
    return count > 0 ? (size_t)count * (size_t)slot->type_size : 0;
}
"""
_ROOM = """
static size_t lapwing_room(struct lapwing_slot *slot, int count, MPI_Datatype type)
{
    size_t bytes = lapwing_bytes(slot, count, type);
    if (slot->bytes < bytes) {
        free(slot->copy);
        slot->copy = (char *)malloc(bytes);
        if (slot->copy == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
        slot->bytes = bytes;
    }
    return bytes;
}
"""
_SEND = """
static int lapwing_send(struct lapwing_slot *slot, const void *data, int count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm)
{
    size_t bytes;
    if (slot->pending) MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
    bytes = lapwing_room(slot, count, type);
    if (bytes > 0) memcpy(slot->copy, data, bytes);
    slot->pending = 1;
    return MPI_Isend(slot->copy, count, type, dest, tag, comm, &slot->request);
}
"""
_SEND_SHORT = f"""
static int lapwing_send_if_long(struct lapwing_slot *slot, const void *data, int count, MPI_Datatype type, int dest, int tag,
                                MPI_Comm comm)
{{
    if (lapwing_bytes(slot, count, type) <= {SHORT_MESSAGE}) return MPI_Send((void *)data, count, type, dest, tag, comm);
    return lapwing_send(slot, data, count, type, dest, tag, comm);
}}
"""
_HOLD = f"""
static int lapwing_hold(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{{
    slot->held = lapwing_bytes(slot, count, type) <= {SHORT_MESSAGE};
    slot->count = count;
    slot->source = source;
    slot->tag = tag;
    slot->comm = comm;
    return slot->held;
}}
"""
_HELD = """\
    if (slot->held) return MPI_Recv(data, slot->count, slot->type, slot->source, slot->tag, slot->comm, status);
"""
_POST = Template(
    """
static void lapwing_post(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    lapwing_room(slot, count, type);
    MPI_Irecv(slot->copy, count, type, source, tag, comm, &slot->request);
}

static int lapwing_arrive(struct lapwing_slot *slot, void *data, MPI_Status *status)
{
    MPI_Status found;
    int count, error;
${held}\
    error = MPI_Wait(&slot->request, &found);
    MPI_Get_count(&found, slot->type, &count);
    if (count > 0) memcpy(data, slot->copy, (size_t)count * (size_t)slot->type_size);
    if (status != MPI_STATUS_IGNORE) *status = found;
    return error;
}
"""
)
_POST_SHORT = """
static void lapwing_post_if_long(struct lapwing_slot *slot, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm)
{
    if (!lapwing_hold(slot, count, type, source, tag, comm)) lapwing_post(slot, count, type, source, tag, comm);
}
"""
_RECEIVE = f"""
static void lapwing_receive_if_long(struct lapwing_slot *slot, void *data, int count, MPI_Datatype type, int source, int tag,
                            MPI_Comm comm)
{{
    if (lapwing_hold(slot, count, type, source, tag, comm)) return;
    MPI_Irecv(data, count, type, source, tag, comm, &slot->request);
}}

static int lapwing_received(struct lapwing_slot *slot, void *data, MPI_Status *status)
{{
{_HELD}\
    return MPI_Wait(&slot->request, status);
}}
"""
_DRAIN = Template(
    """
${linkage}void $name(void)
{
    int i;
    for (i = 0; i < $slots; i++)
        if (lapwing_slots[i].pending) {
            MPI_Wait(&lapwing_slots[i].request, MPI_STATUS_IGNORE);
            lapwing_slots[i].pending = 0;
        }
}
"""
)

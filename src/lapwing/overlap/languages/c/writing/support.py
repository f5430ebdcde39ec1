"""Support code for a changed file in C or C++: slots, and the procedures that work on them.

Members, parameters and local variables begin with ``lw_``, here and in all other generated C text (strip_mining.py,
transforms/software_pipelining/): the program's macros may have any ordinary name.
"""

from __future__ import annotations

from collections.abc import Collection
from string import Template

from lapwing.overlap.ir.split_phase import SHORT_MESSAGE, Part
from lapwing.overlap.languages.shared.support_requirements import (
    PROGRESS_COMMENT,
    SLOTS_COMMENT,
    SupportRequirements,
    drain_name,
    progress_name,
)


def c_support(requirements: SupportRequirements, cpp: bool, included: Collection[str]) -> str:
    """Text for C or C++, where MPI is declared. ``included``: headers that the file has."""
    parts = [_head(requirements, included)] if requirements.slots else []
    if requirements.progresses:
        linkage = "static " if not requirements.lends else 'extern "C" ' if cpp else ""
        parts.append(_PROGRESS.substitute(linkage=linkage, name=progress_name(requirements.stem)))
    if requirements.is_typed:
        parts.append(_BYTES)
    if requirements.copying:
        parts.append(_ROOM)
    if Part.SEND in requirements.copying:
        parts.append(_SEND)
    if (Part.SEND, True) in requirements.plain:
        parts.append(_SEND_SHORT)
    if requirements.holds:
        parts.append(_HOLD)
    if Part.POST in requirements.copying:
        parts.append(_POST.substitute(held=_HELD if (Part.POST, True) in requirements.plain else ""))
    if (Part.POST, True) in requirements.plain:
        parts.append(_POST_SHORT)
    if requirements.direct:
        parts.append(_RECEIVE)
    if requirements.drains:
        linkage = "static " if requirements.drained_here else 'extern "C" ' if cpp else ""
        parts.append(_DRAIN.substitute(linkage=linkage, name=drain_name(requirements.stem), slots=requirements.slots))
    # A declaration in a block would have the enclosing namespace and C++ linkage, but the callee may be in a C file.
    others = sorted(requirements.elsewhere - ({drain_name(requirements.stem)} if requirements.drains else set()))
    if others:
        parts.append("\n" + "".join(f'extern "C" void {name}(void);\n' for name in others))
    return "".join(parts)


def _head(requirements: SupportRequirements, included: Collection[str]) -> str:
    """The slots, with the members that this file requires."""
    lines = [
        "MPI_Request lw_request;",
        *(["char *lw_copy;", "size_t lw_bytes;"] if requirements.copying else []),
        *(["MPI_Datatype lw_type;", "int lw_type_size;"] if requirements.is_typed else []),
        *(["int lw_pending;"] if requirements.drains else []),
        *(["int lw_held, lw_count, lw_source, lw_tag;", "MPI_Comm lw_comm;"] if requirements.holds else []),
    ]
    fields = "".join(f"    {line}\n" for line in lines)
    headers = ["stdlib.h"] if requirements.copying else []
    headers += ["string.h"] if requirements.copying or requirements.memcpy else []
    includes = "".join(f"#include <{header}>\n" for header in headers if header not in included)
    return _HEAD.substitute(slots=requirements.slots, fields=fields, includes=includes)


_HEAD = Template(
    f"\n/* {SLOTS_COMMENT}"
    """. A slot is one call's request and, if it needs one, its copy of the data. */
${includes}struct lapwing_slot {
$fields};
static struct lapwing_slot lapwing_slots[$slots];
"""
)
# MPICH advances no other messages when it probes MPI_COMM_SELF, or when the probe succeeds: hence MPI_COMM_WORLD, and a tag
# that is hardly used, the largest that every MPI allows.
_PROGRESS = Template(
    f"\n/* {PROGRESS_COMMENT}"
    """, about every 30 microseconds. It need not look at the clock each time. */
${linkage}void $name(void)
{
    static double lw_last;
    static int lw_left, lw_skipped;
    double lw_now, lw_passed;
    int lw_flag, lw_over;
    if (lw_left-- > 0) return;
    MPI_Initialized(&lw_flag);
    MPI_Finalized(&lw_over);
    if (!lw_flag || lw_over) return;
    lw_now = MPI_Wtime();
    lw_passed = lw_now - lw_last;
    lw_skipped = lw_passed > 60e-6 ? 0 : lw_passed < 30e-6 && lw_skipped < 15 ? 2 * lw_skipped + 1 : lw_skipped;
    lw_left = lw_skipped;
    if (lw_passed < 30e-6) return;
    lw_last = lw_now;
    MPI_Iprobe(MPI_ANY_SOURCE, 32767, MPI_COMM_WORLD, &lw_flag, MPI_STATUS_IGNORE);
}
"""
)
# The types are MPI's own (split_phase/blocking_calls.py): one handle means one size for ever.
_BYTES = """
static size_t lapwing_bytes(struct lapwing_slot *lw_slot, int lw_count, MPI_Datatype lw_type)
{
    if (lw_slot->lw_type_size == 0 || lw_slot->lw_type != lw_type) MPI_Type_size(lw_type, &lw_slot->lw_type_size);
    lw_slot->lw_type = lw_type;
    return lw_count > 0 ? (size_t)lw_count * (size_t)lw_slot->lw_type_size : 0;
}
"""
_ROOM = """
static size_t lapwing_room(struct lapwing_slot *lw_slot, int lw_count, MPI_Datatype lw_type)
{
    size_t lw_bytes = lapwing_bytes(lw_slot, lw_count, lw_type);
    if (lw_slot->lw_bytes < lw_bytes) {
        free(lw_slot->lw_copy);
        lw_slot->lw_copy = (char *)malloc(lw_bytes);
        if (lw_slot->lw_copy == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
        lw_slot->lw_bytes = lw_bytes;
    }
    return lw_bytes;
}
"""
_SEND = """
static int lapwing_send(struct lapwing_slot *lw_slot, const void *lw_data, int lw_count, MPI_Datatype lw_type,
                        int lw_dest, int lw_tag, MPI_Comm lw_comm)
{
    size_t lw_bytes;
    if (lw_slot->lw_pending) MPI_Wait(&lw_slot->lw_request, MPI_STATUS_IGNORE);
    lw_bytes = lapwing_room(lw_slot, lw_count, lw_type);
    if (lw_bytes > 0) memcpy(lw_slot->lw_copy, lw_data, lw_bytes);
    lw_slot->lw_pending = 1;
    return MPI_Isend(lw_slot->lw_copy, lw_count, lw_type, lw_dest, lw_tag, lw_comm, &lw_slot->lw_request);
}
"""
_SEND_SHORT = f"""
static int lapwing_send_if_long(struct lapwing_slot *lw_slot, const void *lw_data, int lw_count, MPI_Datatype lw_type,
                                int lw_dest, int lw_tag, MPI_Comm lw_comm)
{{
    if (lapwing_bytes(lw_slot, lw_count, lw_type) <= {SHORT_MESSAGE})
        return MPI_Send((void *)lw_data, lw_count, lw_type, lw_dest, lw_tag, lw_comm);
    return lapwing_send(lw_slot, lw_data, lw_count, lw_type, lw_dest, lw_tag, lw_comm);
}}
"""
_HOLD = f"""
static int lapwing_hold(struct lapwing_slot *lw_slot, int lw_count, MPI_Datatype lw_type, int lw_source,
                        int lw_tag, MPI_Comm lw_comm)
{{
    lw_slot->lw_held = lapwing_bytes(lw_slot, lw_count, lw_type) <= {SHORT_MESSAGE};
    lw_slot->lw_count = lw_count;
    lw_slot->lw_source = lw_source;
    lw_slot->lw_tag = lw_tag;
    lw_slot->lw_comm = lw_comm;
    return lw_slot->lw_held;
}}
"""
_HELD = """\
    if (lw_slot->lw_held)
        return MPI_Recv(lw_data, lw_slot->lw_count, lw_slot->lw_type, lw_slot->lw_source, lw_slot->lw_tag,
                        lw_slot->lw_comm, lw_status);
"""
_POST = Template(
    """
static void lapwing_post(struct lapwing_slot *lw_slot, int lw_count, MPI_Datatype lw_type, int lw_source,
                         int lw_tag, MPI_Comm lw_comm)
{
    lapwing_room(lw_slot, lw_count, lw_type);
    MPI_Irecv(lw_slot->lw_copy, lw_count, lw_type, lw_source, lw_tag, lw_comm, &lw_slot->lw_request);
}

static int lapwing_arrive(struct lapwing_slot *lw_slot, void *lw_data, MPI_Status *lw_status)
{
    MPI_Status lw_found;
    int lw_count, lw_error;
${held}\
    lw_error = MPI_Wait(&lw_slot->lw_request, &lw_found);
    MPI_Get_count(&lw_found, lw_slot->lw_type, &lw_count);
    if (lw_count > 0) memcpy(lw_data, lw_slot->lw_copy, (size_t)lw_count * (size_t)lw_slot->lw_type_size);
    if (lw_status != MPI_STATUS_IGNORE) *lw_status = lw_found;
    return lw_error;
}
"""
)
_POST_SHORT = """
static void lapwing_post_if_long(struct lapwing_slot *lw_slot, int lw_count, MPI_Datatype lw_type, int lw_source,
                                 int lw_tag, MPI_Comm lw_comm)
{
    if (!lapwing_hold(lw_slot, lw_count, lw_type, lw_source, lw_tag, lw_comm))
        lapwing_post(lw_slot, lw_count, lw_type, lw_source, lw_tag, lw_comm);
}
"""
_RECEIVE = f"""
static void lapwing_receive_if_long(struct lapwing_slot *lw_slot, void *lw_data, int lw_count, MPI_Datatype lw_type,
                                    int lw_source, int lw_tag, MPI_Comm lw_comm)
{{
    if (lapwing_hold(lw_slot, lw_count, lw_type, lw_source, lw_tag, lw_comm)) return;
    MPI_Irecv(lw_data, lw_count, lw_type, lw_source, lw_tag, lw_comm, &lw_slot->lw_request);
}}

static int lapwing_received(struct lapwing_slot *lw_slot, void *lw_data, MPI_Status *lw_status)
{{
{_HELD}\
    return MPI_Wait(&lw_slot->lw_request, lw_status);
}}
"""
_DRAIN = Template(
    """
${linkage}void $name(void)
{
    int lw_i;
    for (lw_i = 0; lw_i < $slots; lw_i++)
        if (lapwing_slots[lw_i].lw_pending) {
            MPI_Wait(&lapwing_slots[lw_i].lw_request, MPI_STATUS_IGNORE);
            lapwing_slots[lw_i].lw_pending = 0;
        }
}
"""
)

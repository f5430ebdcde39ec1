"""MPI's calls as a table, one line a call: MPI 3.1 with what MPI 3.0 removed, and of MPI 4 what follows from it.

A line is the name without `MPI_`, the parameters of the C binding under the standard's names (they are the keywords
of Fortran's `mpi_f08`, too), and after a bar what else is known. Fortran's IERROR is left out. An indented line
continues the one above. A section's heading is the kind of its calls.

What a call does to an argument, or in C to what a pointer argument points to:

    name     reads it
    >name    writes it
    <>name   reads and writes it
    &name    neither: takes its address

Marks after the name:

    *        a buffer that holds as many elements for every rank (or neighbour)
    @        a buffer that counts only at the root
    :ROLE    a role other than the one its name has everywhere else
    C.       (in front) Fortran has no such parameter

After the bar:

    nonblocking   there is a nonblocking form: no status, a request last
    nonblocking_4 there is one since MPI 4, which many libraries do not have
    persistent    there is a persistent form: a collective's also takes an info (MPI 4)
    request       there is a form that returns a request (one-sided)
    immediate     does not wait for other ranks, in a section whose calls do
    waits         may wait for other ranks, in a section whose calls do not
    collective    every rank must call it, in the same order as its other collective calls
    synchronises  see MpiCall
    no_ierror     returns its result, or nothing: there is no IERROR
"""

from __future__ import annotations

TABLE = """
[SEND]
Send                       buf count datatype dest tag comm  | nonblocking persistent
Bsend                      buf count datatype dest tag comm  | nonblocking persistent
Rsend                      buf count datatype dest tag comm  | nonblocking persistent
Ssend                      buf count datatype dest tag comm  | nonblocking persistent synchronises

[RECV]
Recv                       >buf count datatype source tag comm >status  | nonblocking persistent
Mrecv                      >buf count datatype <>message >status  | nonblocking

[SENDRECV]
Sendrecv                   sendbuf sendcount sendtype dest sendtag
                           >recvbuf recvcount recvtype source recvtag comm >status  | nonblocking_4
Sendrecv_replace           <>buf count datatype dest sendtag source recvtag comm >status  | nonblocking_4

[PROBE]
Probe                      source tag comm >status
Iprobe                     source tag comm >flag >status  | immediate
Mprobe                     source tag comm >message >status
Improbe                    source tag comm >flag >message >status  | immediate

[COMPLETION]
Wait                       <>request >status
Waitall                    count <>array_of_requests >array_of_statuses
Waitany                    count <>array_of_requests >index >status
Waitsome                   incount <>array_of_requests >outcount >array_of_indices >array_of_statuses
Test                       <>request >flag >status  | immediate
Testall                    count <>array_of_requests >flag >array_of_statuses  | immediate
Testany                    count <>array_of_requests >index >flag >status  | immediate
Testsome                   incount <>array_of_requests >outcount >array_of_indices >array_of_statuses  | immediate

[PERSISTENT]
Start                      <>request
Startall                   count <>array_of_requests

[BARRIER]
Barrier                    comm  | nonblocking persistent collective synchronises

[COLLECTIVE]
Bcast                      <>buffer count datatype root comm  | nonblocking persistent collective
Gather                     sendbuf sendcount sendtype >recvbuf*@ recvcount recvtype root comm
                           | nonblocking persistent collective
Gatherv                    sendbuf sendcount sendtype >recvbuf*@ recvcounts displs recvtype root comm
                           | nonblocking persistent collective
Scatter                    sendbuf*@ sendcount sendtype >recvbuf recvcount recvtype root comm
                           | nonblocking persistent collective
Scatterv                   sendbuf*@ sendcounts displs sendtype >recvbuf recvcount recvtype root comm
                           | nonblocking persistent collective
Allgather                  sendbuf sendcount sendtype >recvbuf* recvcount recvtype comm
                           | nonblocking persistent collective
Allgatherv                 sendbuf sendcount sendtype >recvbuf* recvcounts displs recvtype comm
                           | nonblocking persistent collective
Alltoall                   sendbuf* sendcount sendtype >recvbuf* recvcount recvtype comm
                           | nonblocking persistent collective
Alltoallv                  sendbuf* sendcounts sdispls sendtype >recvbuf* recvcounts rdispls recvtype comm
                           | nonblocking persistent collective
Alltoallw                  sendbuf* sendcounts sdispls sendtypes >recvbuf* recvcounts rdispls recvtypes comm
                           | nonblocking persistent collective
Reduce                     sendbuf >recvbuf@ count datatype op root comm  | nonblocking persistent collective
Allreduce                  sendbuf >recvbuf count datatype op comm  | nonblocking persistent collective
Reduce_scatter             sendbuf* >recvbuf recvcounts datatype op comm  | nonblocking persistent collective
Reduce_scatter_block       sendbuf* >recvbuf recvcount datatype op comm  | nonblocking persistent collective
Scan                       sendbuf >recvbuf count datatype op comm  | nonblocking persistent collective
Exscan                     sendbuf >recvbuf count datatype op comm  | nonblocking persistent collective
Neighbor_allgather         sendbuf sendcount sendtype >recvbuf* recvcount recvtype comm
                           | nonblocking persistent collective
Neighbor_allgatherv        sendbuf sendcount sendtype >recvbuf* recvcounts displs recvtype comm
                           | nonblocking persistent collective
Neighbor_alltoall          sendbuf* sendcount sendtype >recvbuf* recvcount recvtype comm
                           | nonblocking persistent collective
Neighbor_alltoallv         sendbuf* sendcounts sdispls sendtype >recvbuf* recvcounts rdispls recvtype comm
                           | nonblocking persistent collective
Neighbor_alltoallw         sendbuf* sendcounts sdispls sendtypes >recvbuf* recvcounts rdispls recvtypes comm
                           | nonblocking persistent collective

[ABORT]
Abort                      comm errorcode  | synchronises

[ONE_SIDED]
Put                        origin_addr origin_count origin_datatype target_rank target_disp target_count
                           target_datatype win  | request
Get                        >origin_addr origin_count origin_datatype target_rank target_disp target_count
                           target_datatype win  | request
Accumulate                 origin_addr origin_count origin_datatype target_rank target_disp target_count
                           target_datatype op win  | request
Get_accumulate             origin_addr origin_count origin_datatype >result_addr result_count result_datatype
                           target_rank target_disp target_count target_datatype op win  | request
Fetch_and_op               origin_addr >result_addr datatype target_rank target_disp op win
Compare_and_swap           origin_addr compare_addr >result_addr datatype target_rank target_disp win
Win_create                 <>base:MEMORY size disp_unit info comm >win  | collective
Win_create_dynamic         info comm >win  | collective
Win_allocate               size disp_unit info comm >baseptr >win  | collective
Win_allocate_shared        size disp_unit info comm >baseptr >win  | collective
Win_shared_query           win rank >size >disp_unit >baseptr
Win_attach                 win <>base:MEMORY size
Win_detach                 win &base:MEMORY
Win_free                   <>win  | collective synchronises
Win_fence                  assert win  | collective synchronises
Win_start                  group assert win  | waits synchronises
Win_complete               win  | waits synchronises
Win_post                   group assert win  | synchronises
Win_wait                   win  | waits synchronises
Win_test                   win >flag  | synchronises
Win_lock                   lock_type rank assert win  | waits synchronises
Win_lock_all               assert win  | waits synchronises
Win_unlock                 rank win  | waits synchronises
Win_unlock_all             win  | waits synchronises
Win_flush                  rank win  | waits synchronises
Win_flush_all              win  | waits synchronises
Win_flush_local            rank win  | waits
Win_flush_local_all        win  | waits
Win_sync                   win  | synchronises

[IO]
File_open                  comm filename amode info >fh  | collective
File_close                 <>fh  | collective synchronises
File_delete                filename info
File_set_size              fh size  | collective
File_preallocate           fh size  | collective
File_set_info              fh info  | collective
File_set_view              fh disp etype filetype datarep info  | collective
File_set_atomicity         fh flag:VALUE_IN  | collective
File_sync                  fh  | collective synchronises
File_seek                  fh offset whence
File_seek_shared           fh offset whence  | collective
File_get_size              fh >size
File_get_group             fh >group
File_get_amode             fh >amode
File_get_info              fh >info_used
File_get_view              fh >disp >etype >filetype >datarep
File_get_position          fh >offset
File_get_position_shared   fh >offset
File_get_byte_offset       fh offset >disp
File_get_type_extent       fh datatype >extent
File_get_atomicity         fh >flag
File_read                  fh >buf count datatype >status  | nonblocking
File_read_all              fh >buf count datatype >status  | nonblocking collective
File_read_at               fh offset >buf count datatype >status  | nonblocking
File_read_at_all           fh offset >buf count datatype >status  | nonblocking collective
File_read_shared           fh >buf count datatype >status  | nonblocking
File_read_ordered          fh >buf count datatype >status  | collective
File_read_all_begin        fh >buf count datatype  | collective immediate
File_read_all_end          fh >buf >status  | collective
File_read_at_all_begin     fh offset >buf count datatype  | collective immediate
File_read_at_all_end       fh >buf >status  | collective
File_read_ordered_begin    fh >buf count datatype  | collective immediate
File_read_ordered_end      fh >buf >status  | collective
File_write                 fh buf count datatype >status  | nonblocking
File_write_all             fh buf count datatype >status  | nonblocking collective
File_write_at              fh offset buf count datatype >status  | nonblocking
File_write_at_all          fh offset buf count datatype >status  | nonblocking collective
File_write_shared          fh buf count datatype >status  | nonblocking
File_write_ordered         fh buf count datatype >status  | collective
File_write_all_begin       fh buf count datatype  | collective immediate
File_write_all_end         fh buf >status  | collective
File_write_at_all_begin    fh offset buf count datatype  | collective immediate
File_write_at_all_end      fh buf >status  | collective
File_write_ordered_begin   fh buf count datatype  | collective immediate
File_write_ordered_end     fh buf >status  | collective
Register_datarep           datarep read_conversion_fn:PROCEDURE write_conversion_fn:PROCEDURE
                           dtype_file_extent_fn:PROCEDURE <>extra_state:MEMORY

[SETUP]
Init                       C.<>argc C.<>argv  | collective synchronises
Init_thread                C.<>argc C.<>argv required >provided  | collective synchronises
Finalize                   | collective synchronises

Comm_rank                  comm >rank
Comm_size                  comm >size
Comm_remote_size           comm >size
Comm_group                 comm >group
Comm_remote_group          comm >group
Comm_compare               comm1:COMM comm2:COMM >result
Comm_test_inter            comm >flag
Comm_dup                   comm >newcomm  | nonblocking collective
Comm_dup_with_info         comm info >newcomm  | nonblocking_4 collective
Comm_create                comm group >newcomm  | collective
Comm_create_group          comm group tag >newcomm  | collective
Comm_split                 comm color key >newcomm  | collective
Comm_split_type            comm split_type key info >newcomm  | collective
Comm_free                  <>comm  | collective
Comm_disconnect            <>comm  | collective
Comm_get_parent            >parent:NEW_COMM
Comm_join                  fd >intercomm  | waits
Comm_accept                port_name info root comm >newcomm  | collective
Comm_connect               port_name info root comm >newcomm  | collective
Comm_spawn                 command argv maxprocs info root comm >intercomm >array_of_errcodes  | collective
Comm_spawn_multiple        count array_of_commands array_of_argv array_of_maxprocs array_of_info root comm >intercomm
                           >array_of_errcodes  | collective
Comm_get_name              comm >comm_name >resultlen
Comm_set_name              comm comm_name
Comm_get_info              comm >info_used
Comm_set_info              comm info  | collective
Intercomm_create           local_comm local_leader peer_comm remote_leader tag >newintercomm  | collective
Intercomm_merge            intercomm high >newintracomm  | collective
Open_port                  info >port_name
Close_port                 port_name
Publish_name               service_name info port_name
Unpublish_name             service_name info port_name
Lookup_name                service_name info >port_name

Group_size                 group >size
Group_rank                 group >rank
Group_translate_ranks      group1 n ranks1 group2 >ranks2
Group_compare              group1 group2 >result
Group_union                group1 group2 >newgroup
Group_intersection         group1 group2 >newgroup
Group_difference           group1 group2 >newgroup
Group_incl                 group n ranks >newgroup
Group_excl                 group n ranks >newgroup
Group_range_incl           group n ranges >newgroup
Group_range_excl           group n ranges >newgroup
Group_free                 <>group

Cart_create                comm_old ndims dims periods reorder >comm_cart  | collective
Cart_sub                   comm remain_dims >newcomm  | collective
Cart_get                   comm maxdims >dims >periods >coords
Cart_rank                  comm coords >rank
Cart_coords                comm rank maxdims >coords
Cart_shift                 comm direction disp >rank_source >rank_dest
Cart_map                   comm ndims dims periods >newrank
Cartdim_get                comm >ndims
Dims_create                nnodes ndims <>dims
Graph_create               comm_old nnodes index:VALUE_IN edges reorder >comm_graph  | collective
Graph_get                  comm maxindex maxedges >index:VALUE_OUT >edges
Graph_map                  comm nnodes index:VALUE_IN edges >newrank
Graph_neighbors            comm rank maxneighbors >neighbors
Graph_neighbors_count      comm rank >nneighbors
Graphdims_get              comm >nnodes >nedges
Dist_graph_create          comm_old n sources degrees destinations weights info reorder >comm_dist_graph  | collective
Dist_graph_create_adjacent comm_old indegree sources sourceweights outdegree destinations destweights info reorder
                           >comm_dist_graph  | collective
Dist_graph_neighbors       comm maxindegree >sources >sourceweights maxoutdegree >destinations >destweights
Dist_graph_neighbors_count comm >indegree >outdegree >weighted
Topo_test                  comm >status:VALUE_OUT

Type_commit                <>datatype
Type_free                  <>datatype
Type_dup                   oldtype >newtype
Type_contiguous            count oldtype >newtype
Type_vector                count blocklength stride oldtype >newtype
Type_hvector               count blocklength stride oldtype >newtype
Type_create_hvector        count blocklength stride oldtype >newtype
Type_indexed               count array_of_blocklengths array_of_displacements oldtype >newtype
Type_hindexed              count array_of_blocklengths array_of_displacements oldtype >newtype
Type_create_hindexed       count array_of_blocklengths array_of_displacements oldtype >newtype
Type_create_indexed_block  count blocklength array_of_displacements oldtype >newtype
Type_create_hindexed_block count blocklength array_of_displacements oldtype >newtype
Type_struct                count array_of_blocklengths array_of_displacements array_of_types >newtype
Type_create_struct         count array_of_blocklengths array_of_displacements array_of_types >newtype
Type_create_subarray       ndims array_of_sizes array_of_subsizes array_of_starts order oldtype >newtype
Type_create_darray         size rank ndims array_of_gsizes array_of_distribs array_of_dargs array_of_psizes order
                           oldtype >newtype
Type_create_resized        oldtype lb extent >newtype
Type_create_f90_real       p r >newtype
Type_create_f90_complex    p r >newtype
Type_create_f90_integer    r >newtype
Type_match_size            typeclass size >datatype
Type_size                  datatype >size
Type_size_x                datatype >size
Type_extent                datatype >extent
Type_lb                    datatype >displacement
Type_ub                    datatype >displacement
Type_get_extent            datatype >lb >extent
Type_get_extent_x          datatype >lb >extent
Type_get_true_extent       datatype >true_lb >true_extent
Type_get_true_extent_x     datatype >true_lb >true_extent
Type_get_envelope          datatype >num_integers >num_addresses >num_datatypes >combiner
Type_get_contents          datatype max_integers max_addresses max_datatypes >array_of_integers >array_of_addresses
                           >array_of_datatypes
Type_get_name              datatype >type_name >resultlen
Type_set_name              datatype type_name

Op_create                  user_fn:PROCEDURE commute >op:VALUE_OUT
Op_free                    <>op
Op_commutative             op >commute

Info_create                >info
Info_dup                   info >newinfo
Info_free                  <>info
Info_set                   info key value
Info_delete                info key
Info_get                   info key valuelen >value >flag
Info_get_valuelen          info key >valuelen >flag
Info_get_nkeys             info >nkeys
Info_get_nthkey            info n >key

Keyval_create              copy_fn:PROCEDURE delete_fn:PROCEDURE >keyval <>extra_state:MEMORY
Keyval_free                <>keyval
Attr_put                   comm keyval <>attribute_val:MEMORY
Attr_get                   comm keyval >attribute_val >flag
Attr_delete                comm keyval
Comm_create_keyval         comm_copy_attr_fn:PROCEDURE comm_delete_attr_fn:PROCEDURE >comm_keyval
                           <>extra_state:MEMORY
Comm_free_keyval           <>comm_keyval
Comm_set_attr              comm comm_keyval <>attribute_val:MEMORY
Comm_get_attr              comm comm_keyval >attribute_val >flag
Comm_delete_attr           comm comm_keyval
Type_create_keyval         type_copy_attr_fn:PROCEDURE type_delete_attr_fn:PROCEDURE >type_keyval
                           <>extra_state:MEMORY
Type_free_keyval           <>type_keyval
Type_set_attr              datatype type_keyval <>attribute_val:MEMORY
Type_get_attr              datatype type_keyval >attribute_val >flag
Type_delete_attr           datatype type_keyval
Win_create_keyval          win_copy_attr_fn:PROCEDURE win_delete_attr_fn:PROCEDURE >win_keyval <>extra_state:MEMORY
Win_free_keyval            <>win_keyval
Win_set_attr               win win_keyval <>attribute_val:MEMORY
Win_get_attr               win win_keyval >attribute_val >flag
Win_delete_attr            win win_keyval
Win_get_group              win >group
Win_get_info               win >info_used
Win_set_info               win info  | collective
Win_get_name               win >win_name >resultlen
Win_set_name               win win_name

Errhandler_create          comm_errhandler_fn:PROCEDURE >errhandler
Errhandler_set             comm errhandler
Errhandler_get             comm >errhandler
Errhandler_free            <>errhandler
Comm_create_errhandler     comm_errhandler_fn:PROCEDURE >errhandler
Comm_set_errhandler        comm errhandler
Comm_get_errhandler        comm >errhandler
Win_create_errhandler      win_errhandler_fn:PROCEDURE >errhandler
Win_set_errhandler         win errhandler
Win_get_errhandler         win >errhandler
File_create_errhandler     file_errhandler_fn:PROCEDURE >errhandler
File_set_errhandler        file errhandler
File_get_errhandler        file >errhandler
Add_error_class            >errorclass
Add_error_code             errorclass >errorcode
Add_error_string           errorcode string

[LOCAL]
Wtime                      | no_ierror
Wtick                      | no_ierror
Initialized                >flag
Finalized                  >flag
Query_thread               >provided
Is_thread_main             >flag
Get_version                >version >subversion
Get_library_version        >version >resultlen
Get_processor_name         >name >resultlen
Error_class                errorcode >errorclass
Error_string               errorcode >string >resultlen
Get_count                  status datatype >count
Get_elements               status datatype >count
Get_elements_x             status datatype >count
Test_cancelled             status >flag
Status_set_cancelled       <>status flag:VALUE_IN
Status_set_elements        <>status datatype count
Status_set_elements_x      <>status datatype count
Address                    &location:MEMORY >address
Get_address                &location:MEMORY >address
Aint_add                   base disp  | no_ierror
Aint_diff                  addr1 addr2  | no_ierror
Alloc_mem                  size info >baseptr
Free_mem                   <>base:MEMORY
Pack                       inbuf incount datatype <>outbuf outsize <>position comm
Unpack                     inbuf insize <>position >outbuf outcount datatype comm
Pack_size                  incount datatype comm >size
Pack_external              datarep inbuf incount datatype <>outbuf outsize <>position
Unpack_external            datarep inbuf insize <>position >outbuf outcount datatype
Pack_external_size         datarep incount datatype >size
Reduce_local               inbuf <>inoutbuf count datatype op
Sizeof                     &x >size
F_sync_reg                 <>buf:MEMORY  | no_ierror
Comm_c2f                   comm  | no_ierror
Comm_f2c                   comm  | no_ierror
Type_c2f                   datatype  | no_ierror
Type_f2c                   datatype  | no_ierror
Group_c2f                  group  | no_ierror
Group_f2c                  group  | no_ierror
Request_c2f                request  | no_ierror
Request_f2c                request  | no_ierror
Op_c2f                     op  | no_ierror
Op_f2c                     op  | no_ierror
Win_c2f                    win  | no_ierror
Win_f2c                    win  | no_ierror
File_c2f                   file  | no_ierror
File_f2c                   file  | no_ierror
Info_c2f                   info  | no_ierror
Info_f2c                   info  | no_ierror
Errhandler_c2f             errhandler  | no_ierror
Errhandler_f2c             errhandler  | no_ierror
Message_c2f                message  | no_ierror
Message_f2c                message  | no_ierror
Status_c2f                 c_status >f_status
Status_f2c                 f_status >c_status
Status_f082f               f08_status >f_status
Status_f2f08               f_status >f08_status
Status_c2f08               c_status >f08_status
Status_f082c               f08_status >c_status

[OTHER]
Request_free               <>request
Request_get_status         request >flag >status
Cancel                     <>request
Buffer_attach              <>buffer:MEMORY size
Buffer_detach              >buffer_addr >size  | waits
Grequest_start             query_fn:PROCEDURE free_fn:PROCEDURE cancel_fn:PROCEDURE <>extra_state:MEMORY >request
Grequest_complete          request
Comm_call_errhandler       comm errorcode
Win_call_errhandler        win errorcode
File_call_errhandler       fh errorcode
Pcontrol                   level  | no_ierror
"""

! Declarations by a macro: nobody can say what the buffers are, so their calls stay.
#define REALT double precision
program macro_types
  use mpi
  implicit none
  REALT :: a(100), b(100), c(100)
  integer :: i, it, ie, me, np
  call mpi_init(ie)
  call mpi_comm_rank(mpi_comm_world, me, ie)
  call mpi_comm_size(mpi_comm_world, np, ie)
  do i = 1, 100; a(i) = i + me; c(i) = i; end do
  do it = 1, 3
     call mpi_sendrecv(a, 100, mpi_double_precision, mod(me+1,np), 1, b, 100, &
#ifdef BACKWARDS
          mpi_double_precision, mod(me+1,np), 1, &
#else
          mpi_double_precision, mod(me+np-1,np), 1, &
#endif
          mpi_comm_world, mpi_status_ignore, ie)
     do i = 1, 100
        c(i) = 0.5d0*c(i) + i
     end do
     call mpi_sendrecv(c, 100, mpi_double_precision, mod(me+1,np), 1, a, 100, mpi_double_precision, &
          mod(me+np-1,np), 1, mpi_comm_world, mpi_status_ignore, ie)
     do i = 1, 100
        c(i) = 0.5d0*c(i) + i
     end do
     a = 0.5d0*b + c + a
  end do
  print '(3(z16.16,1x))', a(3), b(5), c(7)
  call mpi_finalize(ie)
end program

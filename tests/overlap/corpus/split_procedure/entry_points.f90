subroutine stepa(x, n)
  implicit none
  include 'mpif.h'
  integer n, k, ierr, me, np, st(MPI_STATUS_SIZE), i
  double precision x(n), y(n), buf(500)
  double precision acc
  save buf, acc, me, np
  data acc /0d0/
  call mpi_comm_rank(mpi_comm_world, me, ierr)
  call mpi_comm_size(mpi_comm_world, np, ierr)
  call mpi_sendrecv(x, n, mpi_double_precision, mod(me+1,np), 1, buf, n, mpi_double_precision, mod(me+np-1,np), 1, mpi_comm_world, st, ierr)
  do i = 1, n
     acc = acc*0.5d0 + x(i)
  end do
  return
  entry stepb(y, n, k)
  do i = 1, n
     y(i) = y(i)*0.5d0 + buf(i) + acc
  end do
  if (k > 2) return
  y(1) = y(1) + 1
  return
end subroutine
program entries
  implicit none
  include 'mpif.h'
  external stepa, stepb
  double precision a(300), c(300)
  integer it, i, ierr, me
  call mpi_init(ierr)
  call mpi_comm_rank(mpi_comm_world, me, ierr)
  do i = 1, 300
     a(i) = i + me ; c(i) = i
  end do
  do it = 1, 5
     call stepa(a, 300)
     do i = 1, 300 ; c(i) = 0.5d0*c(i) + i ; end do
     call stepb(a, 300, it)
     do i = 1, 300 ; a(i) = a(i) + c(301-i) ; end do
  end do
  print '(2(z16.16,1x))', a(5), c(7)
  call mpi_finalize(ierr)
end program

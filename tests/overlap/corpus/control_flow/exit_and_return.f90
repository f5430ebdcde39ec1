module all
  use mpi
  implicit none
  integer, parameter :: n = 1200
  double precision :: a(n), b(n), c(n), d(n)
  integer :: me, np, next, prev
contains
  subroutine turn(step)
    integer, intent(in) :: step
    integer :: i, j, error
    outer: do j = 1, 2
      call mpi_sendrecv(a, n, MPI_DOUBLE_PRECISION, next, 1, b, n, MPI_DOUBLE_PRECISION, prev, 1, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
      do i = 1, n
        if (d(i) > 1d9) exit
        if (i == 200 .and. step == 3) return
        d(i) = 0.5d0 * d(i) + i
      end do
      c = 0.5d0 * c + b
    end do outer
  end subroutine
end module
program main
  use all
  implicit none
  integer :: ierr, step
  call mpi_init(ierr)
  call mpi_comm_rank(MPI_COMM_WORLD, me, ierr)
  call mpi_comm_size(MPI_COMM_WORLD, np, ierr)
  next = mod(me + 1, np)
  prev = mod(me + np - 1, np)
  a = me + 1
  b = 2
  c = 3
  d = 4
  do step = 1, 3
    call turn(step)
    a = 0.5d0 * a + 0.25d0 * c + 0.125d0 * b
  end do
  write(*, '(i3, 4(1x, z16.16))') me, sum(a), sum(b), sum(c), sum(d)
  call mpi_finalize(ierr)
end program

! Variables of the host, which a contained procedure leaves with a value for it.
program host_variables
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr, step
  real(8) :: u(0:n + 1, n), r(n, n) = 0, s = 0, t

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = rank + 1
  do step = 1, 3
    call work()
    s = s + t
    u(1:n, :) = u(1:n, :) + 0.25d0 * r
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), s
  call MPI_Finalize(ierr)
contains
  subroutine work()
    integer :: i, j

    call MPI_Sendrecv(u(n, 1), 1, MPI_DOUBLE_PRECISION, right, 2, u(0, 1), 1, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do j = 1, n
      do i = 1, n
        t = 2 * u(i - 1, j) + i
        r(i, j) = r(i, j) + t
      end do
    end do
  end subroutine work
end program host_variables

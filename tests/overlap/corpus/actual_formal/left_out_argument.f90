! An OPTIONAL argument that is left out before others with keywords.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
contains
  real(8) function combined(a, b, c)
    real(8), intent(in) :: a, c(n + 2)
    real(8), intent(in), optional :: b(n + 2)

    combined = a + c(n + 2)
    if (present(b)) combined = combined + b(1)
  end function combined
end module grid

program left_out_argument
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + combined(1d0, c=u)
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program left_out_argument

! Variables with the names of functions, subroutines and kinds that are not used where these are declared.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
end module grid

subroutine declared()
  use grid
  implicit none
  real(8) :: total, t
  integer :: i

  call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  ! total (of all)
  call get(total)
  do i = 1, n
    w(i) = w(i) + total
  end do
  call second(t)
  do i = 1, n
    if (t >= 0) w(i) = w(i) + 1
  end do
  r = r + 0.5d0 * u(2:n + 1)
contains
  subroutine get(value)
    real(8), intent(inout) :: value

    value = u(n + 1)
  end subroutine get
end subroutine declared

subroutine implicitly()
  use grid
  implicit real(8) (a-h, o-z)

  call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                    MPI_STATUS_IGNORE, ierr)
  call get(total)
  call get(declared)
  call get(real64)
  do i = 1, n
    w(i) = w(i) + 2 * total
  end do
  do i = 1, n
    w(i) = w(i) + 2 * declared
  end do
  do i = 1, n
    w(i) = w(i) + 2 * real64
  end do
  r = r + 0.5d0 * u(2:n + 1)
contains
  subroutine get(value)
    real(8), intent(inout) :: value

    value = u(n + 1)
  end subroutine get
end subroutine implicitly

program names_in_scopes
  use grid
  implicit none
  integer :: i, step

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  u = [(i + 100 * rank, i=0, n + 1)]
  do step = 1, 3
    call declared()
    call implicitly()
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program names_in_scopes

real(8) function total(k)
  integer :: k

  total = k
end function total

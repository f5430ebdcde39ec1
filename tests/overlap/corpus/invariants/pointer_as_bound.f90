! Loops whose ends are known by a pointer, and change by the target's own name.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n + 9) = 0, w(0:n + 1) = 1
  type box
    integer :: n
  end type
  integer, target :: m
  integer, pointer :: p
  type(box), target :: b
  type(box), pointer :: q
end module grid

program pointer_as_bound
  use grid
  implicit none
  integer :: i, step, c, first

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    m = n - 3
    p => m
    first = p
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(first + 4), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do c = 1, 2
      do i = 1, 2
        m = m + 1
      end do
      do i = 1, p
        r(i) = r(i) + 0.5d0 * u(i)
      end do
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  do step = 1, 3
    b%n = n - 3
    q => b
    first = q%n
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(first + 4), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do c = 1, 2
      do i = 1, 2
        b%n = b%n + 1
      end do
      do i = 1, q%n
        r(i) = r(i) + 0.25d0 * u(i)
      end do
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,3z17.16)') rank, sum(u), sum(r), sum(w)
  call MPI_Finalize(ierr)
end program pointer_as_bound

! Whoever takes an allocatable as one takes its bounds as well, not bounds from 1.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8), allocatable :: v(:)
contains
  subroutine work(a)
    real(8), allocatable, intent(in) :: a(:)
    integer :: i

    do i = 1, n
      r(i) = r(i) + 0.5d0 * a(i + 1)
    end do
    do i = 1, n
      w(i) = w(i) + i
    end do
  end subroutine work
end module grid

program bounds_of_allocatables
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
  allocate (v(0:n + 1))
  v(:) = u
  do step = 1, 3
    call MPI_Sendrecv(v(1), 1, MPI_DOUBLE_PRECISION, left, 1, v(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call work(v)
    v(1:n) = v(1:n) + 0.25d0 * r
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(v)
  call MPI_Finalize(ierr)
end program bounds_of_allocatables

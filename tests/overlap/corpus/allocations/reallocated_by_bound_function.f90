! A type's function that gives its argument another shape: the columns of z are no longer what its ALLOCATE says.
module growing
  implicit none
  integer, parameter :: n = 40
  real(8), allocatable :: z(:, :)
  type :: grower
    integer :: rows = n / 2
  contains
    procedure :: g => grow
  end type grower
contains
  integer function grow(self, a)
    class(grower), intent(in) :: self
    real(8), allocatable, intent(inout) :: a(:, :)

    deallocate (a)
    allocate (a(self%rows, 0:12), source=1d0)
    grow = size(a)
  end function grow
end module growing

program reallocated_by_bound_function
  use mpi
  use growing
  implicit none
  integer :: rank, ranks, left, right, ierr, i, step, k
  real(8) :: w(n) = 1
  type(grower) :: o

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  allocate (z(n, 0:12))
  k = o%g(z)
  do step = 1, 3
    call MPI_Sendrecv(z(1, 1), n, MPI_DOUBLE_PRECISION, left, 1, z(1, 4), n, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    do i = 1, n / 2
      w(i) = w(i) + z(i, 5)
    end do
    do i = 1, n / 2
      z(i, 2) = z(i, 1) + w(i) + rank
      z(i, 1) = z(i, 4) + 1
    end do
  end do
  write (*, '(i4,(3z17.16))') rank, w, z
  call MPI_Finalize(ierr)
end program reallocated_by_bound_function

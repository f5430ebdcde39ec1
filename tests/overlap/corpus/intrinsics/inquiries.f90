! Inquiries about what statements change: shapes, lengths, associations and values.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  real(8), allocatable :: v(:)
  real(8), pointer :: p(:)
  character(:), allocatable :: s
contains
  subroutine associate_anew()
    if (associated(p)) deallocate (p)
    allocate (p(1 + mod(int(u(n + 1)), 7)))
  end subroutine associate_anew

  integer function elements(a)
    real(8), intent(in) :: a(:)

    elements = size(a)
  end function elements
end module grid

program inquiries
  use grid
  implicit none
  integer :: i, step
  integer :: k, status
  character(10) :: text

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    nullify (p)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    if (allocated(v)) deallocate (v)
    allocate (v(10 + mod(int(u(n + 1)), 7)))
    do i = 1, n
      w(i) = w(i) + size(v)
    end do
    do i = 1, n
      w(i) = w(i) + elements(v)
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    s = repeat('x', 1 + mod(int(u(n + 1)), 9))
    do i = 1, n
      w(i) = w(i) + len(s)
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call associate_anew()
    do i = 1, n
      w(i) = w(i) + size(p)
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    text = ' '
    if (u(n + 1) < 50) text = '7'
    read (text, *, iostat=status) k
    do i = 1, n
      if (is_iostat_end(status)) w(i) = w(i) + 1
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program inquiries

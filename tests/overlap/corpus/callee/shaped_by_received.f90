! Bounds and lengths that procedures evaluate when they are called.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
contains
  subroutine work(a, k, m)
    integer, intent(in) :: k, m
    real(8) :: a(0:m - 1, *)
    integer :: i

    do i = 1, k
      a(2, i) = a(2, i) + 1
    end do
  end subroutine work

  function letters(k)
    integer, intent(in) :: k
    character(2 + mod(int(u(n + 1)), 7)) :: letters

    letters = repeat('x', k)
  end function letters

  integer function elements()
    real(8) :: own(2 + mod(int(u(n + 1)), 7))

    elements = size(own)
  end function elements
end module grid

program shaped_by_received
  use grid
  implicit none
  integer :: i, step
  integer :: k, m

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)
  do i = 0, n + 1
    u(i) = i + 100 * rank
  end do
  do step = 1, 3
    k = rank + 4
    call MPI_Sendrecv(k, 1, MPI_INTEGER, left, 1, m, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call work(w, 5, m)
    r = r + m
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + len(letters(i))
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    do i = 1, n
      w(i) = w(i) + elements()
    end do
    do i = 1, n
      r(i) = r(i) + u(i + 1)
    end do
    u(1:n) = u(1:n) + 0.25d0 * r
  end do
  write (*, '(i4,(3z17.16))') rank, u, r, w
  call MPI_Finalize(ierr)
end program shaped_by_received

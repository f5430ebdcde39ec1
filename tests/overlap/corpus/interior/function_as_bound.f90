! Bounds that a function gives: it counts its calls, or says something else once a loop has run.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: asked = 0, last
  real(8) :: v(n, n) = 0, s(n, n) = 0
contains
  integer function counted()
    asked = asked + 1
    counted = 5
  end function counted

  integer function current()
    current = last
  end function current
end module grid

program function_as_bound
  use grid
  implicit none
  integer :: i, step, j

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
    do j = 1, counted()
      do i = 1, n
        v(j, i) = v(j, i) + 0.5d0 * u(i + 1)
      end do
      do i = 1, n
        s(j, i) = s(j, i) + 0.5d0 * i
      end do
    end do
    r = r + v(1, :)
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  do step = 1, 3
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    last = 5
    do j = 1, current()
      do i = 1, n
        v(j, i) = v(j, i) + 0.25d0 * u(i + 1)
      end do
      do i = 1, n
        s(j, i) = s(j, i) + 0.25d0 * i
        if (i == n) last = 9
      end do
    end do
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,6z17.16)') rank, sum(u), sum(r), sum(w), sum(v), sum(s), asked + 0d0
  call MPI_Finalize(ierr)
end program function_as_bound

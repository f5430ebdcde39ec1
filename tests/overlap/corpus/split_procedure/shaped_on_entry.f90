! Arrays and characters that have the shape their bounds gave them on entry, and bounds that change later.
module grid
  use mpi
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks, left, right, ierr
  real(8) :: u(0:n + 1), r(n) = 0, w(0:n + 1) = 1
  integer :: k
  real(8) :: t(8, 8) = 0
  character(8) :: names(4) = 'abcdefgh'
contains
  subroutine dummy(v, m)
    integer :: m, i
    real(8) :: v(m, m)

    m = m - 4
    do i = 1, n
      w(i) = w(i) + 0.5d0 * u(i)
    end do
    do i = 1, 3
      v(i, 2) = v(i, 2) + u(n + 1)
    end do
  end subroutine dummy

  subroutine automatic()
    integer :: i
    real(8) :: line(k)

    k = k - 35
    do i = 1, n
      w(i) = w(i) + 0.5d0 * u(i)
    end do
    do i = 1, size(line)
      line(i) = u(i + 1)
    end do
    do i = 1, size(line)
      r(i) = r(i) + line(i) + line(1)
    end do
  end subroutine automatic

  subroutine letters(c, m)
    integer :: i, m
    character(len=m) :: c(*)

    m = m - 3
    do i = 1, n
      w(i) = w(i) + 0.5d0 * u(i)
    end do
    do i = 1, 2
      if (u(n + 1) > 0) c(i + 1) = 'xyz'
    end do
  end subroutine letters
end module grid

program shaped_on_entry
  use grid
  implicit none
  integer :: i, step, m

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
    m = 8
    call dummy(t, m)
    u(m) = u(m) + t(2, 2)
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    k = n
    call automatic()
    u(k) = u(k) + 1
    call MPI_Sendrecv(u(1), 1, MPI_DOUBLE_PRECISION, left, 1, u(n + 1), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    m = 8
    call letters(names, m)
    print *, names
    u(1:n) = u(1:n) + 0.25d0 * r(1:n)
  end do
  write (*, '(i4,4z17.16)') rank, sum(u), sum(r), sum(w), sum(t)
  call MPI_Finalize(ierr)
end program shaped_on_entry

program p
  use mpi
  implicit none
  integer, parameter :: n = 4000
  double precision, allocatable :: u(:), v(:)
  integer :: rank, ranks, error, t
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate (u(n), v(n))
  u = rank
  v = 0
  do t = 1, 3
    call exchange(u, v, n)
    call fill(v(2), n - 1)
    u(2) = u(1) + v(2)
  end do
  print *, u(1), u(2), sum(v)
  call MPI_Finalize(error)
contains
  subroutine exchange(u, v, n)
    integer, intent(in) :: n
    double precision :: u(n), v(*)
    call MPI_Sendrecv(u(n - 1), 1, MPI_DOUBLE_PRECISION, modulo(rank + 1, ranks), 1, u(1), 1, MPI_DOUBLE_PRECISION, &
                      modulo(rank - 1, ranks), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end subroutine
  subroutine fill(v, n)
    integer, intent(in) :: n
    double precision :: v(n)
    integer :: i, k
    do k = 1, n
      do i = 1, n
        v(1 + mod(i * k, n)) = 0.5d0 * v(i) + i
      end do
    end do
  end subroutine
end program

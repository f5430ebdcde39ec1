c     The buffer and the work array are the same memory.
      program same
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 2000)
      double precision buf(n), work(n), u(n), s
      equivalence (buf(1), work(1))
      integer rank, size, next, prev, step, i, ierr
      integer status(MPI_STATUS_SIZE)

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      next = mod(rank + 1, size)
      prev = mod(rank + size - 1, size)
      do i = 1, n
         u(i) = mod(i * 3 + rank, 17)
         buf(i) = 0.0d0
      end do
      do step = 1, 3
c        The next loop writes the buffer under its other name.
         call mpi_sendrecv(u, n, MPI_DOUBLE_PRECISION, next, 0, buf, n,
     &      MPI_DOUBLE_PRECISION, prev, 0, MPI_COMM_WORLD, status, ierr)
         do i = 2, n
            work(i) = 0.5d0 * work(i) + 0.25d0 * work(i-1)
         end do
         do i = 1, n
            u(i) = 0.5d0 * u(i) + buf(i)
         end do
      end do
      s = 0.0d0
      do i = 1, n
         s = s + u(i)
      end do
      write (*, '(i4,z17.16)') rank, s
      call mpi_finalize(ierr)
      end

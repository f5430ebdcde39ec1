c     The usual pattern: receives are posted, but waited for at once.
      program usual
      implicit none
      include 'mpif.h'
      integer n
      parameter (n = 1500)
      double precision u(0:n+1, 2), out(n), in(n), t(n), s
      common /fields/ u, out, in, t
      integer rank, size, next, prev, step, i, ierr, request
      integer status(MPI_STATUS_SIZE)

      call mpi_init(ierr)
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      next = mod(rank + 1, size)
      prev = mod(rank + size - 1, size)
      do i = 0, n + 1
         u(i, 1) = mod(i * 3 + rank, 41)
         u(i, 2) = 0.0d0
      end do
      do i = 1, n
         t(i) = 0.0d0
      end do
      do step = 1, 4
         do i = 1, n
            out(i) = u(i, 1)
         end do
c        overlap: wait-later
         call mpi_irecv(in, n, MPI_DOUBLE_PRECISION, prev, 11,
     &                  MPI_COMM_WORLD, request, ierr)
         call mpi_send(out, n, MPI_DOUBLE_PRECISION, next, 11,
     &                 MPI_COMM_WORLD, ierr)
         call mpi_wait(request, status, ierr)
         do i = 1, n
            t(i) = 0.5d0 * t(i) + 0.25d0 * (u(i-1, 1) + u(i+1, 1))
         end do
         do i = 1, n
            u(i, 2) = in(i) + t(i)
         end do
         do i = 1, n
            u(i, 1) = 0.5d0 * u(i, 2)
         end do
      end do
      s = 0.0d0
      do i = 1, n
         s = s + u(i, 1)
      end do
      write (*, '(i4,z17.16)') rank, s
      call mpi_finalize(ierr)
      end

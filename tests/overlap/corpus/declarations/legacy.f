C     legacy fixed form: COMMON with different layouts, EQUIVALENCE,
C     statement functions, labelled shared DO ends, GOTO loops
      PROGRAM LEGACY
      INCLUDE 'mpif.h'
      PARAMETER (N=200)
      COMMON /BLK/ A(N), B(N), K, L
      COMMON /WRK/ C(N,2)
      DOUBLE PRECISION A, B, C, W(N), E(2*N), H
      EQUIVALENCE (E(1), W(1))
      INTEGER ST(MPI_STATUS_SIZE)
      DOUBLE PRECISION AVG, X, Y
      AVG(X,Y) = 0.5D0*(X+Y)
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, ME, IERR)
      CALL MPI_COMM_SIZE(MPI_COMM_WORLD, NP, IERR)
      NEXT = MOD(ME+1,NP)
      IPREV = MOD(ME+NP-1,NP)
      DO 10 I = 1, N
      A(I) = I + ME
      B(I) = 0
      DO 10 J = 1, 2
   10 C(I,J) = I*J
      DO 15 I = 1, 2*N
   15 E(I) = I
      IT = 0
  100 CONTINUE
      IT = IT + 1
      CALL MPI_SENDRECV(A, N, MPI_DOUBLE_PRECISION, NEXT, 1,
     &     B, N, MPI_DOUBLE_PRECISION, IPREV, 1, MPI_COMM_WORLD,
     1     ST, IERR)
      DO 20 J = 1, 2
      DO 20 I = 1, N
   20 C(I,J) = AVG(C(I,J), DBLE(I))
      CALL MIX
      DO 30 I = 1, N
   30 A(I) = AVG(B(I), C(I,1))
      CALL MPI_SENDRECV(W, N, MPI_DOUBLE_PRECISION, NEXT, 2,
     &     C(1,2), N, MPI_DOUBLE_PRECISION, IPREV, 2, MPI_COMM_WORLD,
     1     ST, IERR)
      DO 40 I = 1, 2*N
   40 E(I) = 0.5D0*E(I) + 1
      DO 45 I = 1, N
   45 A(I) = A(I) + C(I,2)
      IF (IT .LT. 5) GOTO 100
      H = 0
      DO 50 I = 1, N
   50 H = 0.5D0*H + A(I) + B(I) + C(I,1) + C(I,2) + E(I)
      WRITE(*,'(Z16.16,2I5)') H, K, L
      CALL MPI_FINALIZE(IERR)
      END
      SUBROUTINE MIX
      PARAMETER (N=200)
      COMMON /BLK/ Q(2*N), M(2)
      COMMON /WRK/ D(2*N)
      DOUBLE PRECISION Q, D
      M(1) = M(1) + 1
      M(2) = M(2) + 2
      Q(N+3) = Q(N+3) + M(1)
      DO 10 I = 1, 2*N, 3
   10 D(I) = D(I) + M(2)
      RETURN
      ENTRY MIX2
      Q(1) = 0
      END
